"""Extractive question answering: the answer to the writer's question is a stretch of the passage."""

from hits.tasks._spec import (
    ContextField,
    Fit,
    Label,
    QuizItem,
    SpanInput,
    TaskSpec,
    TextInput,
    WorkedExample,
    WriterItem,
)

_BRIDGE = (
    "The old bridge at Tarn was built of oak in 1742 and carried carts until a flood took it in 1811. Its successor, of"
    " stone, was paid for by a toll of two pence, which the town gave up only when the railway came in 1868."
)
_BEES = (
    "A bumblebee queen sleeps through the winter alone, a few centimetres under the ground. In spring she looks for an"
    " empty mouse nest, lays about ten eggs on a lump of pollen and warms them with her body. The first daughters"
    " hatch after three weeks and take over the collecting, while the queen stays inside."
)
_LIGHTHOUSE = (
    "Marten Holl kept the lighthouse for thirty-one years. His daughter Ines followed him in 1954 and was the last"
    " keeper: the lamp was made automatic in 1979, and the keepers' house became a school for sailors."
)
_BREAD = (
    "For the flat bread of the valley, rye flour is mixed with sour milk instead of water. The dough rests for a night"
    " and is baked on hot slate for four minutes on each side. Salt is only sprinkled on at the table."
)
_ORCHARD = (
    "The orchard behind the monastery has sixty apple trees of nine kinds. The monks press most of the apples into"
    " juice; the rest they store in straw under the chapel, where they keep until April."
)
_CLOCK = (
    "In 1903 the town hall was given a clock with two faces. The one to the market runs well, while the one to the"
    " river has been three minutes slow since a storm in 1931. Nobody has had it set right: the ferrymen like those"
    " three minutes."
)

TASK = TaskSpec(
    code="qa",
    version=2,
    title="Ask a question about a passage that a language model answers wrongly",
    description=(
        "Read a short passage, ask a question about it, mark the answer in the passage, and see at once whether a"
        " language model finds it. You have several tries. Payment does not depend on fooling the model; fooling it"
        " earns a bonus once other people agree that your answer is right."
    ),
    keywords=("writing", "reading", "questions", "fool the model"),
    summary="Ask a question about a passage that you can answer and a language model can't.",
    instructions=(
        "Read the passage and think of a question that it answers.",
        "Write the question, then mark the answer in the passage: the shortest stretch that answers it.",
        "Ask the model. It also answers with a stretch of the passage. If the words of your two answers overlap by less"
        " than 40 %, you fooled it.",
        "Other people will read passage, question and answer. It counts when they agree that your answer is right.",
    ),
    rules=(
        "Write one whole question in English, in your own words.",
        "It has exactly one right answer, and that answer stands in the passage.",
        "No questions that are answered by yes or no.",
        "Ask about what the passage says, not about its words or their order, as in “what is the third word?”.",
        "No expert knowledge: a careful reader must find the answer in the passage.",
    ),
    labels=(
        Label(
            "right",
            "right",
            "a QUESTION about the passage",
            "Right: the marked words answer the question, and no others in the passage do it better",
        ),
        Label(
            "wrong",
            "wrong",
            "a question whose answer is marked wrongly",
            "Wrong: the marked words don't answer the question, or only part of it, or the passage doesn't answer it",
        ),
    ),
    goals=("right",),
    rejecting_labels=("wrong",),
    context_fields=(ContextField("passage", "Passage", 5000),),
    answer_fields=(
        TextInput("question", "Your question", "One question that the passage answers.", 500, rows=2, min_words=2),
        SpanInput(
            "answer", "Your answer", "The shortest stretch of the passage that answers it.", of="passage", max_words=30
        ),
    ),
    model_fields=("passage", "question"),
    goal_words="Ask {goal} that you can answer and the model can't.",
    item_name="question",
    validation_question="Do the marked words answer the question?",
    examples=(
        WorkedExample(
            {
                "question": "What did people have to do to use the second bridge before there were trains?",
                "answer": "toll",
            },
            "right",
            "The passage has no “have to”; the model must see that a toll is paid by those who cross.",
            {"passage": _BRIDGE},
        ),
        WorkedExample(
            {"question": "How did the first bridge come to its end?", "answer": "a flood took it"},
            "right",
            "Two bridges and three years in the text mislead the model.",
            {"passage": _BRIDGE},
        ),
        WorkedExample(
            {"question": "What was the bridge made of that stood when the railway came?", "answer": "stone"},
            "right",
            "One word is enough. “of stone, was paid for” would be too long.",
            {"passage": _BRIDGE},
        ),
        WorkedExample(
            {"question": "Who built the railway?", "answer": "the town"},
            "wrong",
            "The passage does not say who built it. Readers reject such a question.",
            {"passage": _BRIDGE},
        ),
    ),
    quiz=(
        QuizItem(
            "Where does a bumblebee queen lay her eggs?",
            "right",
            "She lays them on a lump of pollen.",
            {"passage": _BEES},
            "on a lump of pollen",
        ),
        QuizItem(
            "Who collects once the first daughters have hatched?",
            "wrong",
            "The daughters take over; the queen stays inside.",
            {"passage": _BEES},
            "the queen",
        ),
        QuizItem(
            "Whose old home does the queen move into?",
            "right",
            "She looks for an empty mouse nest, so a mouse lived there.",
            {"passage": _BEES},
            "mouse",
        ),
        QuizItem(
            "How many daughters does a queen have in a year?",
            "wrong",
            "Ten are the first eggs. The passage does not say how many there are in a year.",
            {"passage": _BEES},
            "ten",
        ),
        QuizItem(
            "Who worked in the lighthouse in 1960?",
            "right",
            "Ines followed in 1954 and was the last keeper until 1979.",
            {"passage": _LIGHTHOUSE},
            "Ines",
        ),
        QuizItem(
            "Who was the last keeper of the lighthouse?",
            "wrong",
            "Marten Holl was the one before; the last was Ines.",
            {"passage": _LIGHTHOUSE},
            "Marten Holl",
        ),
        QuizItem(
            "When did the lighthouse stop needing a keeper?",
            "right",
            "The lamp was made automatic in 1979.",
            {"passage": _LIGHTHOUSE},
            "1979",
        ),
        QuizItem(
            "What is the keepers' house used for today?",
            "wrong",
            "Only part of the answer is marked: it became a school for sailors.",
            {"passage": _LIGHTHOUSE},
            "for sailors",
        ),
        QuizItem(
            "What do bakers of the valley take where others take water?",
            "right",
            "Sour milk is used instead of water.",
            {"passage": _BREAD},
            "sour milk",
        ),
        QuizItem(
            "How long is one piece of the bread baked in all?",
            "wrong",
            "Four minutes on each side are eight in all, and eight does not stand in the passage.",
            {"passage": _BREAD},
            "four minutes",
        ),
        QuizItem(
            "Where does the bread get its salt?",
            "right",
            "It is sprinkled on at the table.",
            {"passage": _BREAD},
            "at the table",
        ),
        QuizItem(
            "What must the dough do before it is baked?",
            "right",
            "It rests for a night.",
            {"passage": _BREAD},
            "rests for a night",
        ),
        QuizItem(
            "On what is the bread baked?",
            "wrong",
            "The marked words go too far: hot slate is the answer.",
            {"passage": _BREAD},
            "hot slate for four minutes on each side. Salt",
        ),
        QuizItem(
            "When does the queen look for a nest?",
            "right",
            "In spring she looks for an empty one.",
            {"passage": _BEES},
            "In spring",
        ),
        QuizItem(
            "How long did Ines keep the lighthouse?",
            "wrong",
            "Her father kept it for thirty-one years; she kept it from 1954 to 1979.",
            {"passage": _LIGHTHOUSE},
            "thirty-one years",
        ),
        QuizItem(
            "Which flour is the bread made of?",
            "right",
            "Rye flour is mixed with sour milk.",
            {"passage": _BREAD},
            "rye flour",
        ),
    ),
    writer_quiz=(
        WriterItem(
            "Where do the monks keep apples in winter?",
            "right",
            Fit.FITS,
            "One answer, and it stands in the passage.",
            {"passage": _ORCHARD},
            "in straw under the chapel",
        ),
        WriterItem(
            "How many trees of each kind are there?",
            "right",
            Fit.OTHER_LABEL,
            "Nine is the number of kinds. The passage does not say how many trees each has.",
            {"passage": _ORCHARD},
            "nine",
        ),
        WriterItem(
            "Are most of the apples made into juice?",
            "right",
            Fit.BREAKS_RULE,
            "It is answered by yes or no.",
            {"passage": _ORCHARD},
            "most of the apples",
        ),
        WriterItem(
            "Until when can the monks eat apples of their own?",
            "right",
            Fit.FITS,
            "They keep until then, so a reader must only put two and two together.",
            {"passage": _ORCHARD},
            "April",
        ),
        WriterItem(
            "What is the second word of the passage?",
            "right",
            Fit.BREAKS_RULE,
            "It asks about the words of the passage, not about what it says.",
            {"passage": _ORCHARD},
            "orchard",
        ),
        WriterItem(
            "How many sorts of apple grow there?",
            "right",
            Fit.FITS,
            "“Sorts” for “kinds”: own words, one right answer.",
            {"passage": _ORCHARD},
            "nine",
        ),
        WriterItem(
            "Who presses the apples?",
            "right",
            Fit.OTHER_LABEL,
            "The monks do. A monastery is a building, so readers will call it wrong.",
            {"passage": _ORCHARD},
            "monastery",
        ),
        WriterItem(
            "Which face of the clock tells the wrong time?",
            "right",
            Fit.FITS,
            "One answer, marked whole.",
            {"passage": _CLOCK},
            "the one to the river",
        ),
        WriterItem(
            "What made the clock slow?",
            "right",
            Fit.FITS,
            "It has been slow since then, and no other cause is named.",
            {"passage": _CLOCK},
            "a storm",
        ),
        WriterItem(
            "Who is glad that one face is slow?",
            "right",
            Fit.FITS,
            "They like those three minutes.",
            {"passage": _CLOCK},
            "the ferrymen",
        ),
        WriterItem(
            "When did the storm hit the clock?",
            "right",
            Fit.OTHER_LABEL,
            "That is when it was given. The storm came in 1931.",
            {"passage": _CLOCK},
            "1903",
        ),
        WriterItem(
            "For how many years had both faces run well when the storm came?",
            "right",
            Fit.OTHER_LABEL,
            "Twenty-eight years, and that does not stand in the passage.",
            {"passage": _CLOCK},
            "1931",
        ),
        WriterItem(
            "Quand l'horloge fut-elle offerte ?",
            "right",
            Fit.BREAKS_RULE,
            "The answer is right, but the question is not in English.",
            {"passage": _CLOCK},
            "In 1903",
        ),
        WriterItem(
            "Does the clock have two faces?",
            "right",
            Fit.BREAKS_RULE,
            "It is answered by yes or no.",
            {"passage": _CLOCK},
            "two faces",
        ),
        WriterItem(
            "Which face should you look at to catch a train?",
            "right",
            Fit.FITS,
            "The one that runs well. The question uses none of the passage's words for it.",
            {"passage": _CLOCK},
            "The one to the market",
        ),
        WriterItem(
            "Who was mayor when the clock was put up?",
            "right",
            Fit.OTHER_LABEL,
            "The passage names no mayor. Readers will call it wrong.",
            {"passage": _CLOCK},
            "the town hall",
        ),
    ),
    default_model="embedded:qa",
)
