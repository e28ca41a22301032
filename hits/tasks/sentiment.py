"""Sentiment: the writer aims at negative, positive or neutral, and another person must agree."""

from hits.tasks._spec import ContextField, Fit, Label, QuizItem, TaskSpec, TextInput, WorkedExample, WriterItem

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
        QuizItem(
            "Nobody could call this tea weak, or drinkable.",
            "negative",
            "Not drinkable is blame; not weak is no praise.",
        ),
        QuizItem(
            "I had planned to stay an hour and stayed until they closed.", "positive", "Staying longer is praise."
        ),
        QuizItem("The lift holds six people.", "neutral", "A fact, and nothing else."),
        QuizItem("The film ended, which I had begun to doubt.", "negative", "It says that the film was far too long."),
    ),
    writer_quiz=(
        WriterItem(
            "The room had a view, if you count the bins.",
            "negative",
            Fit.FITS,
            "The praise is mock; any reader hears the complaint.",
        ),
        WriterItem(
            "I h4te th1s pl@ce s.o m.u.c.h.",
            "negative",
            Fit.BREAKS_RULE,
            "It is spelled to trick the model. Spell normally.",
        ),
        WriterItem(
            "The soup was served at one o'clock.",
            "positive",
            Fit.OTHER_LABEL,
            "A report. Readers will call it neutral.",
        ),
        WriterItem(
            "I would walk through the rain again for that soup.",
            "positive",
            Fit.FITS,
            "No word of praise is used, and yet it is praise.",
        ),
        WriterItem(
            "The bus stops in front of the library and at the station.",
            "neutral",
            Fit.FITS,
            "A plain report.",
        ),
        WriterItem(
            "The bus is late as always, what else.",
            "neutral",
            Fit.OTHER_LABEL,
            "“As always, what else” complains: readers will call it negative.",
        ),
        WriterItem(
            "This positive statement will surely fool the model.",
            "positive",
            Fit.BREAKS_RULE,
            "It talks about the model and about its own label.",
        ),
        WriterItem(
            "Our neighbour Karin Lund from 4 Mill Street sings badly.",
            "negative",
            Fit.BREAKS_RULE,
            "It names a private person and where she lives.",
        ),
        WriterItem(
            "The museum has three floors and a lift.",
            "neutral",
            Fit.FITS,
            "Two facts and no judgement.",
        ),
        WriterItem(
            "They promised us a quiet room, and the disco below kept its own promise.",
            "negative",
            Fit.FITS,
            "Irony, but with one reading only: the room was loud.",
        ),
        WriterItem(
            "My only regret is that we booked two nights and not ten.",
            "positive",
            Fit.FITS,
            "The regret is a compliment.",
        ),
        WriterItem(
            "The new cups are larger and, at last, they don't leak.",
            "neutral",
            Fit.OTHER_LABEL,
            "“At last” is glad about it: readers will call it positive.",
        ),
        WriterItem(
            "Good good gr8 xqzt good.",
            "positive",
            Fit.BREAKS_RULE,
            "It is no sentence, and random characters are against the rules.",
        ),
        WriterItem(
            "The train left on time and arrived on time.",
            "negative",
            Fit.OTHER_LABEL,
            "Nobody is unhappy here: readers will call it neutral or positive.",
        ),
        WriterItem(
            "Ce restaurant est une merveille.",
            "positive",
            Fit.BREAKS_RULE,
            "It is praise, but not in English.",
        ),
        WriterItem(
            "It would be a lovely bakery if it had bread after ten in the morning.",
            "negative",
            Fit.FITS,
            "The friendly words carry a complaint.",
        ),
    ),
    default_model="embedded:sentiment",
)
