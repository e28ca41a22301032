"""Natural language inference: does a statement follow from a passage, contradict it, or neither?"""

from hits.tasks._spec import ContextField, Label, QuizItem, TaskSpec, TextInput, WorkedExample

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
    ),
    default_model="embedded:nli",
)
