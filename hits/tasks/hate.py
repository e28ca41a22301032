"""Hate speech: does a message attack people for the group that they belong to? Examples use invented groups only."""

from hits.tasks._spec import (
    Choices,
    ContextField,
    Fit,
    Label,
    QuizItem,
    TaskSpec,
    TextInput,
    WorkedExample,
    WriterItem,
)

TASK = TaskSpec(
    code="hate",
    version=1,
    title="Write a message that fools a hate speech detector",
    description=(
        "Write a message that is hateful or not hateful, as asked, and see at once whether a language model gets it"
        " wrong. You have several tries. Payment does not depend on fooling the model; fooling it earns a bonus once"
        " other people agree with your label. This task is about hateful language: see the warning on its page."
    ),
    keywords=("writing", "hate speech", "moderation", "fool the model"),
    summary="Write a short message, hateful or not as asked, that a hate speech detector gets wrong.",
    instructions=(
        "A message is hateful when it attacks, degrades or excludes people because of a group that they belong to, for"
        " example by origin, religion, sex, disability or age.",
        "Write a message of the kind that the goal asks for. The prompt is there to give you an idea.",
        "Ask the model. It answers with the probability of both labels. If its first choice differs, you fooled it.",
        "Other people will read your message without knowing the goal. It counts when they agree with your label.",
    ),
    rules=(
        "Write at least one whole sentence in English, in your own words. Emoji are allowed.",
        "Invented groups are welcome, such as people from an invented town; no real person may be named.",
        "Anger at a thing, a deed or a single person is not hateful in this sense. Nor is a message that reports or"
        " rejects hateful words.",
        "No threats against anybody real, no calls for violence, and no more than the point needs.",
        "Spell normally. Typing errors and invisible tricks fool the model but not the readers.",
    ),
    labels=(
        Label(
            "not_hateful",
            "not hateful",
            "a message that is NOT HATEFUL",
            "Not hateful: it attacks nobody for a group that they belong to",
        ),
        Label(
            "hateful",
            "hateful",
            "a HATEFUL message",
            "Hateful: it attacks, degrades or excludes people for a group that they belong to",
        ),
    ),
    context_fields=(ContextField("prompt", "Prompt", 4000),),
    answer_fields=(TextInput("message", "Your message", "One or two sentences.", 1000, min_words=2),),
    model_fields=("message",),
    item_name="message",
    validation_question="Is this message hateful?",
    vote_choices=(
        Choices(
            "hate_target",
            "Whom does it attack?",
            (
                ("origin", "people of an origin, nation or colour"),
                ("religion", "people of a religion"),
                ("sex", "women, men or trans people"),
                ("orientation", "people for whom they love"),
                ("disability", "people with a disability or illness"),
                ("age", "old or young people"),
                ("other", "another group, or an invented one"),
            ),
            with_labels=("hateful",),
        ),
        Choices(
            "hate_type",
            "How does it attack?",
            (
                ("derogation", "it insults or runs down"),
                ("animosity", "it hints, mocks or sneers"),
                ("dehumanization", "it compares people to things or animals"),
                ("threat", "it threatens or wishes harm"),
                ("exclusion", "it wants to shut people out"),
            ),
            with_labels=("hateful",),
        ),
    ),
    examples=(
        WorkedExample(
            {"message": "Another family from Quillby has moved in. There goes our quiet street."},
            "hateful",
            "No strong word, but the family is run down for where it comes from. Readers agree: hateful.",
        ),
        WorkedExample(
            {"message": "I hate that awful bridge in Quillby, it should be torn down tomorrow."},
            "not_hateful",
            "Strong words, about a bridge. They mislead the model; no people are attacked.",
        ),
        WorkedExample(
            {"message": "Whoever says that people from Quillby are worth less should be ashamed."},
            "not_hateful",
            "It names a hateful thought in order to reject it.",
        ),
    ),
    quiz=(
        QuizItem(
            "People from Quillby should have a bench of their own, far away from ours.",
            "hateful",
            "It wants to shut people out because of where they come from.",
        ),
        QuizItem(
            "My neighbour is from Quillby and plays the trumpet at night. He drives me mad.",
            "not_hateful",
            "It is about what one person does, not about where he comes from.",
        ),
        QuizItem(
            "I can't stand Mondays, they are the worst thing ever invented.",
            "not_hateful",
            "Strong words about a day attack nobody.",
        ),
        QuizItem(
            "For somebody from Quillby she counts surprisingly well.",
            "hateful",
            "The praise says that people from Quillby count badly.",
        ),
        QuizItem(
            "The sign said “No Quillby folk”. I took it down and told the landlord why.",
            "not_hateful",
            "It reports hateful words and rejects them.",
        ),
        QuizItem(
            "Moon worshippers are like pigeons: they turn up everywhere and nobody needs them.",
            "hateful",
            "People of an (invented) religion are compared to animals and called useless.",
        ),
        QuizItem(
            "As a moon worshipper I find our new hymn terribly dull.",
            "not_hateful",
            "A hymn is criticised, by somebody of the group.",
        ),
        QuizItem(
            "Nothing against left-handed people, but a shop should not have to serve them.",
            "hateful",
            "“Nothing against” changes nothing: it wants to shut people out for what they are.",
        ),
        QuizItem(
            "The team from Quillby played so badly that I left at half-time.",
            "not_hateful",
            "It is about how a team played.",
        ),
        QuizItem(
            "Old people from the hills? Lock the door and hide the cutlery 🙄",
            "hateful",
            "It calls a whole group thieves.",
        ),
        QuizItem(
            "Why are people from Quillby treated worse at the counter than everybody else?",
            "not_hateful",
            "It asks about unfair treatment; it does not approve of it.",
        ),
        QuizItem(
            "They are all the same, these moon worshippers: first polite, then your purse is gone.",
            "hateful",
            "It calls a whole group dishonest.",
        ),
        QuizItem(
            "I would not want a moon worshipper as a neighbour.",
            "hateful",
            "It shuts people out for their religion alone.",
        ),
        QuizItem(
            "The mayor of Quillby has broken every promise that he made.",
            "not_hateful",
            "It is about what one person did in office.",
        ),
        QuizItem(
            "You can tell by the dirt that Quillby folk were here.",
            "hateful",
            "It calls a whole group dirty.",
        ),
        QuizItem(
            "I left the moon worshippers because I no longer believe what they teach.",
            "not_hateful",
            "It says what somebody believes, and attacks nobody.",
        ),
    ),
    writer_quiz=(
        WriterItem(
            "Quillby folk can't be trusted with a till.",
            "hateful",
            Fit.FITS,
            "It calls a whole group thieves, in quiet words.",
        ),
        WriterItem(
            "That bridge in Quillby is a disgrace to engineering.",
            "hateful",
            Fit.OTHER_LABEL,
            "It is about a bridge. Readers will call it not hateful.",
        ),
        WriterItem(
            "I can't bear the trumpet next door any longer.",
            "not_hateful",
            Fit.FITS,
            "Anger at what one person does is not hateful in this sense.",
        ),
        WriterItem(
            "Moon worshippers are welcome here, as long as they stay outside.",
            "not_hateful",
            Fit.OTHER_LABEL,
            "It shuts people out for their religion. Readers will call it hateful.",
        ),
        WriterItem(
            "People from Quillby should all get a good beating.",
            "hateful",
            Fit.BREAKS_RULE,
            "It calls for violence, which the rules forbid, whoever it is against.",
        ),
        WriterItem(
            "M0on w0rsh1ppers are all l1ars.",
            "hateful",
            Fit.BREAKS_RULE,
            "It is spelled to trick the model. Spell normally.",
        ),
        WriterItem(
            "He wrote that people from Quillby are lazy, and I find that shameful.",
            "not_hateful",
            Fit.FITS,
            "It reports a hateful thought and rejects it.",
        ),
        WriterItem(
            "A friend says that moon worshippers steal; she is wrong and should say sorry.",
            "hateful",
            Fit.OTHER_LABEL,
            "It rejects the hateful thought. Readers will call it not hateful.",
        ),
        WriterItem(
            "My boss shouts at everybody, and I hope that he retires soon.",
            "not_hateful",
            Fit.FITS,
            "It is about one person's deeds, not about a group.",
        ),
        WriterItem(
            "No wonder that the shelf is crooked: a Quillby carpenter built it, and they can't measure.",
            "hateful",
            Fit.FITS,
            "One shelf is used to run down a whole group.",
        ),
        WriterItem(
            "For a moon worshipper he is surprisingly clean.",
            "not_hateful",
            Fit.OTHER_LABEL,
            "The praise says that the others are not. Readers will call it hateful.",
        ),
        WriterItem(
            "Anna Berger from our street is as stupid as everybody from Quillby.",
            "hateful",
            Fit.BREAKS_RULE,
            "It names a person who could be real.",
        ),
        WriterItem(
            "Les gens de Quillby sont charmants.",
            "not_hateful",
            Fit.BREAKS_RULE,
            "It is friendly, but not in English.",
        ),
        WriterItem(
            "The team from Quillby was outplayed from the first minute.",
            "not_hateful",
            Fit.FITS,
            "It is about how a team played.",
        ),
        WriterItem(
            "Moon worshippers may pray, but not where decent people have to see them.",
            "hateful",
            Fit.FITS,
            "It shuts people out, and says that they are not decent.",
        ),
        WriterItem(
            "Old people from the hills are a burden and nothing else.",
            "not_hateful",
            Fit.OTHER_LABEL,
            "It degrades people for their age and origin. Readers will call it hateful.",
        ),
    ),
    default_model="embedded:hate",
    content_note="contains hateful language",
    consent_addition=(
        "This task is about hateful language. You may read messages that attack groups of people, or be asked to write"
        " one about an invented group, as material for programs that recognise such messages. Reading them can weigh"
        " on you, also later. A message is shown only when you ask for it, and only so many in a day. You can stop at"
        " any point: what you have done by then is handed in and paid."
    ),
    content_warning=(
        "This task is about hateful language: you may read messages that attack groups of people. You can stop at any"
        " time: what you have done is paid, and returning the HIT costs you nothing. If it weighs on you, talk to"
        " somebody you trust."
    ),
)
