"""XML of forms and keys that several tests use."""

from __future__ import annotations

BASE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/"


def question_form(*parts: str, day: str = "2017-11-06") -> str:
    return f'<QuestionForm xmlns="{BASE}{day}/QuestionForm.xsd">{"".join(parts)}</QuestionForm>'


def question(identifier: str, answer: str, *, required: bool | None = None, content: str = "<Text>Why?</Text>") -> str:
    is_required = "" if required is None else f"<IsRequired>{str(required).lower()}</IsRequired>"
    return (
        f"<Question><QuestionIdentifier>{identifier}</QuestionIdentifier>{is_required}<QuestionContent>{content}"
        f"</QuestionContent><AnswerSpecification>{answer}</AnswerSpecification></Question>"
    )


def free_text(constraints: str = "", rest: str = "") -> str:
    inside = f"<Constraints>{constraints}</Constraints>" if constraints else ""
    return f"<FreeTextAnswer>{inside}{rest}</FreeTextAnswer>"


def selection(*identifiers: str, counts: str = "", style: str = "", other: str = "") -> str:
    choices = "".join(
        f"<Selection><SelectionIdentifier>{name}</SelectionIdentifier><Text>{name.upper()}</Text></Selection>"
        for name in identifiers
    )
    return f"<SelectionAnswer>{counts}{style}<Selections>{choices}{other}</Selections></SelectionAnswer>"


MANY = "<MinSelectionCount>0</MinSelectionCount><MaxSelectionCount>3</MaxSelectionCount>"
TEST = question_form(
    question("sky", selection("blue", "red"), required=True), question("primes", selection("2", "3", "4", counts=MANY))
)


def answer_key(*questions: str, mapping: str = "") -> str:
    inside = f"<QualificationValueMapping>{mapping}</QualificationValueMapping>" if mapping else ""
    return f'<AnswerKey xmlns="{BASE}2005-10-01/AnswerKey.xsd">{"".join(questions)}{inside}</AnswerKey>'


def right(identifier: str, *options: tuple[tuple[str, ...], int], default: int | None = None) -> str:
    parts = "".join(
        "<AnswerOption>"
        + "".join(f"<SelectionIdentifier>{name}</SelectionIdentifier>" for name in names)
        + f"<AnswerScore>{score}</AnswerScore></AnswerOption>"
        for names, score in options
    )
    last = "" if default is None else f"<DefaultScore>{default}</DefaultScore>"
    return f"<Question><QuestionIdentifier>{identifier}</QuestionIdentifier>{parts}{last}</Question>"


SKY = right("sky", (("blue",), 10))
PRIMES = right("primes", (("2", "3"), 20), (("2",), 5), (("4",), -7), default=-1)
PERCENTAGE = "<PercentageMapping><MaximumSummedScore>30</MaximumSummedScore></PercentageMapping>"
KEY = answer_key(SKY, PRIMES, mapping=PERCENTAGE)
