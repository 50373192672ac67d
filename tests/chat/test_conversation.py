"""A conversation's turns: what changes, what stays, and what goes to disk."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiwa.chat.conversation import Chat, Turn
from kaiwa.errors import InvalidMessages
from kaiwa.messages import Message

turns = st.builds(Turn, st.text(), st.text(), st.sampled_from(["stop", "length", "cancelled", "tool_calls"]))


@st.composite
def chats(draw: st.DrawFn) -> Chat:
    """Any conversation that can come about."""
    chat = Chat(draw(st.text()), tuple(draw(st.lists(turns, max_size=4))))
    return chat.asked(draw(st.text())) if draw(st.booleans()) else chat


def test_messages_are_in_the_order_in_which_they_were_said() -> None:
    chat = Chat("Be brief.").asked("Hi").answered("Hello", "stop").asked("And?")
    assert chat.messages() == [
        Message("system", "Be brief."),
        Message("user", "Hi"),
        Message("assistant", "Hello"),
        Message("user", "And?"),
    ]


def test_without_a_system_prompt_there_is_no_system_message() -> None:
    assert Chat().asked("Hi").messages() == [Message("user", "Hi")]


def test_a_question_that_waits_is_replaced_by_the_next() -> None:
    assert [turn.question for turn in Chat().asked("Hi").asked("Hello").turns] == ["Hello"]


def test_retrying_drops_the_answer_and_undoing_the_turn() -> None:
    chat = Chat().asked("one").answered("1", "stop").asked("two").answered("2", "length")
    assert chat.turns[1].is_partial
    assert chat.unanswered().turns == (*chat.turns[:1], Turn("two"))
    assert chat.undone().turns == chat.turns[:1]
    assert chat.cleared() == Chat()


@pytest.mark.parametrize("change", [lambda chat: chat.undone(), lambda chat: chat.unanswered()])
def test_an_empty_conversation_has_nothing_to_take_back(change: object) -> None:
    with pytest.raises(InvalidMessages):
        change(Chat("Be brief."))  # type: ignore[operator]


def test_there_is_no_answer_without_a_question() -> None:
    with pytest.raises(InvalidMessages, match="no question"):
        Chat().answered("42", "stop")


@given(chats())
def test_what_is_written_is_read_again(chat: Chat) -> None:
    read = Chat.from_dicts(chat.to_dicts())
    assert read.messages() == chat.messages()
    assert [turn.is_partial for turn in read.turns] == [turn.is_partial for turn in chat.turns]


@given(chats(), st.text(), st.text())
def test_undoing_a_turn_gives_back_the_conversation_before_it(chat: Chat, question: str, answer: str) -> None:
    before = chat if not chat.turns or chat.turns[-1].is_answered else chat.undone()
    assert chat.asked(question).answered(answer, "stop").undone() == before


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([{"role": "assistant", "content": "Hi"}], "message 0 is from 'assistant', where a question"),
        (
            [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
            "message 1 is from 'user', where an answer",
        ),
        ([{"role": "user", "content": "a"}, {"role": "system", "content": "b"}], "message 1 is from 'system'"),
        ([{"role": "user", "content": "a", "name": "Bo"}], "message 0 has 'name'"),
        (
            [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "finish_reason": "tired"}],
            "message 1 has the finish_reason 'tired'",
        ),
        ([{"role": "user"}], "message 0"),
    ],
)
def test_messages_that_are_no_turns_are_refused(messages: list[dict[str, str]], reason: str) -> None:
    with pytest.raises(InvalidMessages, match=reason):
        Chat.from_dicts(messages)
