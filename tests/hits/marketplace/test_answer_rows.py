"""Answers as a person reads them."""

from __future__ import annotations

from hits.marketplace.answer_rows import answer_rows
from tests.hits.marketplace.market import Market


def test_every_field_is_a_row_with_any_text_in_it(market: Market) -> None:
    assignment_id = market.accepted(market.create_hit())
    market.engine.external_submit(assignment_id, {"b": ["<grün & ½>\nline"], "a": ['{"label": "x"}'], "empty": [""]})
    answer = market.client.get_assignment(AssignmentId=assignment_id)["Assignment"]["Answer"]

    assert answer_rows(answer) == [("b", ("<grün & ½>\nline",)), ("a", ('{"label": "x"}',)), ("empty", ())]


def test_selections_and_other_words_stand_together() -> None:
    namespace = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/QuestionFormAnswers.xsd"
    xml = (
        f'<QuestionFormAnswers xmlns="{namespace}"><Answer><QuestionIdentifier>colour</QuestionIdentifier>'
        "<SelectionIdentifier>red</SelectionIdentifier><SelectionIdentifier>blue</SelectionIdentifier>"
        "<OtherSelectionText>mauve</OtherSelectionText></Answer></QuestionFormAnswers>"
    )

    assert answer_rows(xml) == [("colour", ("red", "blue", "mauve"))]
