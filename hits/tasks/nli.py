"""Natural language inference: does a statement follow from a passage, contradict it, or neither?"""

from hits.tasks._spec import ContextField, Fit, Label, QuizItem, TaskSpec, TextInput, WorkedExample, WriterItem

_MARKET = (
    "The market on the harbour square opens every Saturday at seven. In winter about thirty traders come, in summer"
    " twice as many. Nearly all of them sell food; the two who sell flowers share one stall."
)
_CHESS = (
    "Ada learned chess from her grandmother, who had played for the town's club in the 1970s. At eleven she won the"
    " school tournament without losing a game, and a year later she joined the same club."
)
_LIBRARY = (
    "The library closed in May because its roof was leaking. The council wanted to open it again in September, but the"
    " carpenters found rot in four of the beams, and the opening was moved to the next spring."
)
_FERRY = (
    "The ferry to the island takes forty minutes and leaves three times a day. Cars have to be booked in advance;"
    " walkers and cyclists just come to the pier."
)
_MILL = (
    "The old mill stands by the river, two kilometres below the village. It ground flour until 1951 and has been a"
    " youth hostel since 1968. Its wheel still turns, but only for visitors: the electricity comes from the village."
)
_CHOIR = (
    "Our choir meets on Thursdays at the school. It has forty singers, most of them over fifty. In December it sings in"
    " the hospital; in June it travels, last year to Lisbon."
)
_SNOW = (
    "It snowed from Monday to Wednesday. The pass was closed on Tuesday and opened again on Friday morning. The school"
    " bus, which goes over the pass, did not run while it was closed."
)

TASK = TaskSpec(
    code="nli",
    version=1,
    title="Write a statement about a passage that fools a language model",
    description=(
        "Read a short passage, write a statement that is definitely correct, definitely incorrect or neither, and see"
        " at once whether a language model gets it wrong. You have several tries. Payment does not depend on fooling"
        " the model; fooling it earns a bonus once other people agree with you."
    ),
    keywords=("writing", "reading", "language", "fool the model"),
    summary="Read a passage and write a statement about it that a language model misjudges.",
    instructions=(
        "Read the passage and take everything in it as true.",
        "Write a statement of the kind that the goal asks for. Definitely correct: whoever believes the passage must"
        " believe it. Definitely incorrect: it can't be true if the passage is. Neither: it may be true or not, the"
        " passage does not say.",
        "Ask the model. It answers with the probability of each of the three. If its first choice differs from your"
        " goal, you fooled it.",
        "Other people will read passage and statement without knowing the goal. It counts when they agree with you.",
    ),
    rules=(
        "Write at least one whole sentence in English, in your own words.",
        "Go by the passage and what everybody knows. No expert knowledge, nothing that has to be looked up.",
        "Only one of the three may fit: a reader must not have to guess what you mean.",
        "Write about what the passage says, not about its wording, its length or its author.",
        "Spell normally. Typing errors and invisible tricks fool the model but not the readers.",
    ),
    labels=(
        Label(
            "entailment",
            "definitely correct",
            "a DEFINITELY CORRECT statement",
            "Definitely correct: if the passage is true, the statement is true",
        ),
        Label(
            "neutral",
            "neither",
            "a statement that is NEITHER correct nor incorrect",
            "Neither: the passage does not say whether it is true",
        ),
        Label(
            "contradiction",
            "definitely incorrect",
            "a DEFINITELY INCORRECT statement",
            "Definitely incorrect: if the passage is true, the statement is false",
        ),
    ),
    context_fields=(ContextField("premise", "Passage", 4000),),
    answer_fields=(TextInput("hypothesis", "Your statement", "At least one whole sentence.", 1000, min_words=3),),
    model_fields=("premise", "hypothesis"),
    goal_words="Going by the passage alone, write {goal} that the model takes for something else.",
    validation_question="Going by the passage alone, what is the statement?",
    examples=(
        WorkedExample(
            {"hypothesis": "More than fifty people sell something on the square on a Saturday in July."},
            "entailment",
            "Twice about thirty is about sixty, in summer. The passage never says fifty, so the model must reckon.",
            {"premise": _MARKET},
        ),
        WorkedExample(
            {"hypothesis": "The flower sellers are married to each other."},
            "neutral",
            "They share a stall. Whether they are married, the passage does not say.",
            {"premise": _MARKET},
        ),
        WorkedExample(
            {"hypothesis": "Someone who comes to the square at six on a Saturday can buy breakfast there."},
            "contradiction",
            "The market opens at seven. Most words fit the passage, which misleads the model.",
            {"premise": _MARKET},
        ),
    ),
    quiz=(
        QuizItem(
            "Ada plays in a club that a relative of hers once played for.",
            "entailment",
            "It is the club of her grandmother.",
            {"premise": _CHESS},
        ),
        QuizItem(
            "Ada was twelve when she joined the club.",
            "entailment",
            "She won at eleven and joined a year later.",
            {"premise": _CHESS},
        ),
        QuizItem(
            "Ada lost one game in the school tournament, but won it all the same.",
            "contradiction",
            "She won it without losing a game.",
            {"premise": _CHESS},
        ),
        QuizItem(
            "Ada's grandmother still plays chess every week.",
            "neutral",
            "We learn what she did in the 1970s and that she taught Ada, not what she does now.",
            {"premise": _CHESS},
        ),
        QuizItem(
            "Nobody could borrow a book there in October of that year.",
            "entailment",
            "It closed in May, and the opening was moved to the next spring.",
            {"premise": _LIBRARY},
        ),
        QuizItem(
            "All beams of the roof were rotten.",
            "neutral",
            "Four of the beams were. Whether there were more than four, the passage does not say.",
            {"premise": _LIBRARY},
        ),
        QuizItem(
            "The library opened again in September as planned.",
            "contradiction",
            "The opening was moved to the next spring.",
            {"premise": _LIBRARY},
        ),
        QuizItem(
            "The repair was more expensive than the council had thought.",
            "neutral",
            "Likely, but the passage speaks of time only, not of money.",
            {"premise": _LIBRARY},
        ),
        QuizItem(
            "A cyclist can decide in the morning to take the noon ferry.",
            "neutral",
            "Cyclists need not book, but we don't know whether a ferry leaves at noon.",
            {"premise": _FERRY},
        ),
        QuizItem(
            "You can leave for the island on more than one ferry a day.",
            "entailment",
            "Three a day is more than one.",
            {"premise": _FERRY},
        ),
        QuizItem(
            "The crossing takes longer than an hour.",
            "contradiction",
            "It takes forty minutes.",
            {"premise": _FERRY},
        ),
        QuizItem(
            "Whoever comes with a car needs no booking if there is room on board.",
            "contradiction",
            "Cars have to be booked in advance.",
            {"premise": _FERRY},
        ),
        QuizItem(
            "Most visitors of the island come without a car.",
            "neutral",
            "The passage says how to come, not how many come in which way.",
            {"premise": _FERRY},
        ),
        QuizItem(
            "Ada had her first lessons in the rooms of the club.",
            "neutral",
            "Her grandmother taught her; where, the passage does not say.",
            {"premise": _CHESS},
        ),
        QuizItem(
            "What the carpenters found kept the library closed for longer.",
            "entailment",
            "The opening was moved because of the rot.",
            {"premise": _LIBRARY},
        ),
        QuizItem(
            "Whoever walks to the pier must have booked the day before.",
            "contradiction",
            "Walkers just come to the pier.",
            {"premise": _FERRY},
        ),
    ),
    writer_quiz=(
        WriterItem(
            "Guests can sleep in a building that once made flour.",
            "entailment",
            Fit.FITS,
            "The mill ground flour and is a youth hostel now.",
            {"premise": _MILL},
        ),
        WriterItem(
            "The hostel is popular with families.",
            "entailment",
            Fit.OTHER_LABEL,
            "The passage does not say who stays there. Readers will call it neither.",
            {"premise": _MILL},
        ),
        WriterItem(
            "The wheel has stood still since 1951.",
            "contradiction",
            Fit.FITS,
            "Its wheel still turns.",
            {"premise": _MILL},
        ),
        WriterItem(
            "The mill stood empty between 1951 and 1968.",
            "neutral",
            Fit.FITS,
            "Likely, but the passage does not say what it was in those years.",
            {"premise": _MILL},
        ),
        WriterItem(
            "The wheel makes the electricity of the hostel.",
            "contradiction",
            Fit.FITS,
            "The electricity comes from the village.",
            {"premise": _MILL},
        ),
        WriterItem(
            "The passage about the mill has three sentences.",
            "neutral",
            Fit.BREAKS_RULE,
            "It is about the passage's length, not about what it says.",
            {"premise": _MILL},
        ),
        WriterItem(
            "The choir sings outside its school at least once a year.",
            "entailment",
            Fit.FITS,
            "In December it sings in the hospital.",
            {"premise": _CHOIR},
        ),
        WriterItem(
            "The conductor of the choir is a teacher.",
            "neutral",
            Fit.FITS,
            "It meets at a school, but nothing is said of its conductor.",
            {"premise": _CHOIR},
        ),
        WriterItem(
            "Most of the singers are younger than forty.",
            "contradiction",
            Fit.FITS,
            "Most of them are over fifty.",
            {"premise": _CHOIR},
        ),
        WriterItem(
            "The choir has thirty singers.",
            "entailment",
            Fit.OTHER_LABEL,
            "It has forty. Readers will call it definitely incorrect.",
            {"premise": _CHOIR},
        ),
        WriterItem(
            "Th3 ch0ir n3ver l3aves its town.",
            "contradiction",
            Fit.BREAKS_RULE,
            "It is spelled to trick the model. Spell normally.",
            {"premise": _CHOIR},
        ),
        WriterItem(
            "No school bus went over the pass on Wednesday.",
            "neutral",
            Fit.OTHER_LABEL,
            "The pass was closed then, so it follows. Readers will call it definitely correct.",
            {"premise": _SNOW},
        ),
        WriterItem(
            "On Thursday evening you could drive over the pass.",
            "contradiction",
            Fit.FITS,
            "It opened again on Friday morning.",
            {"premise": _SNOW},
        ),
        WriterItem(
            "Snow fell on at least three days in a row.",
            "entailment",
            Fit.FITS,
            "Monday to Wednesday are three days.",
            {"premise": _SNOW},
        ),
        WriterItem(
            "The pass is higher than 2,000 metres, as any map of the region shows.",
            "neutral",
            Fit.BREAKS_RULE,
            "A reader would have to look it up.",
            {"premise": _SNOW},
        ),
        WriterItem(
            "It was the hardest winter for years.",
            "contradiction",
            Fit.OTHER_LABEL,
            "The passage does not say. Readers will call it neither.",
            {"premise": _SNOW},
        ),
    ),
    default_model="embedded:nli",
)
