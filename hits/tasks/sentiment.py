"""Sentiment: the writer aims at negative, positive or neutral, and another person must agree."""

from hits.tasks._spec import ContextField, Label, QuizItem, TaskSpec, TextInput, WorkedExample

TASK = TaskSpec(
    code="sentiment",
    version=1,
    title="Write a statement that fools a sentiment model",
    description=(
        "Read a short prompt, write a statement of a given sentiment, and see at once whether a language model"
        " gets it wrong. You have several tries. Payment does not depend on fooling the model; fooling it earns a bonus"
        " once other people agree with your label."
    ),
    keywords=("writing", "sentiment", "language", "fool the model"),
    summary="Write a short statement of a given sentiment that a language model gets wrong.",
    instructions=(
        "The prompt is there to give you an idea. You may rewrite it, answer it, or leave it aside.",
        "Write a statement that any careful reader would call what the goal asks for: negative, positive or neutral.",
        "Ask the model. It answers with the probability of each sentiment. If its first choice differs, you fooled it.",
        "Other people will read your statement without knowing the goal. It counts when they agree with your label.",
    ),
    rules=(
        "Write at least one whole sentence in English, in your own words.",
        "One reading only: a reader must not have to guess what you mean.",
        "Spell normally. Typing errors, random characters and invisible tricks fool the model but not the readers.",
        "Don't talk about the model, this task or the label itself.",
        "No private persons, no insults to groups of people.",
    ),
    labels=(
        Label(
            "negative", "negative", "a NEGATIVE statement", "Negative: the writer is unhappy, critical or disappointed"
        ),
        Label("positive", "positive", "a POSITIVE statement", "Positive: the writer is pleased, praising or glad"),
        Label(
            "neutral",
            "neutral",
            "a NEUTRAL statement",
            "Neutral: the writer reports without judging, or is evenly balanced",
        ),
    ),
    context_fields=(ContextField("prompt", "Prompt", 4000),),
    answer_fields=(TextInput("statement", "Your statement", "One or two sentences.", 1000),),
    model_fields=("statement",),
    validation_question="What does the writer of this statement feel?",
    examples=(
        WorkedExample(
            {"statement": "I would have loved this place if I enjoyed waiting an hour for cold soup."},
            "negative",
            "The words sound friendly, the meaning is a complaint. Readers agree: negative.",
        ),
        WorkedExample(
            {"statement": "I have never had a worse time choosing, because every single dish was a delight."},
            "positive",
            "A word like 'worse' misleads the model; the praise is plain to a reader.",
        ),
        WorkedExample(
            {"statement": "The shop opens at nine and the line is usually gone by ten."},
            "neutral",
            "A report without praise or blame.",
        ),
    ),
    quiz=(
        QuizItem(
            "The waiter took our plates before we had finished.",
            "negative",
            "A complaint, though no strong word is used.",
        ),
        QuizItem("They serve breakfast until eleven.", "neutral", "A fact. Nobody is pleased or unhappy."),
        QuizItem("I came in grumpy and left humming.", "positive", "The change of mood is praise."),
        QuizItem("Not bad at all, I'll be back next week.", "positive", "'Not bad at all' and coming back are praise."),
        QuizItem("If you like loud music with your headache, go there.", "negative", "Irony: the advice is a warning."),
        QuizItem("The new menu has twelve dishes instead of nine.", "neutral", "A change is reported, not judged."),
        QuizItem("My old phone was slow; this one is not.", "positive", "The comparison favours the new phone."),
        QuizItem("I wanted to like it.", "negative", "It says, politely, that the writer did not."),
        QuizItem("The parcel came on the day that was announced.", "neutral", "A plain report."),
        QuizItem("I have been to worse concerts, but only two.", "negative", "Nearly the worst: that is no praise."),
        QuizItem("My only complaint is that it ended.", "positive", "The complaint is a compliment."),
        QuizItem("The blue tent sleeps four, the green one six.", "neutral", "A comparison without a preference."),
    ),
    default_model="embedded:sentiment",
)
