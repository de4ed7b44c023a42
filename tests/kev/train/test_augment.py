"""Augmentation changes what an epoch sees, never what is true, and never with who else is trained."""

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from kev.train.augment import DISTRACTORS, NONE_OPTIONS, Augmentation, augment, permuted
from kev.train.examples import Ask, Example

OPTIONS = ["red: a colour", "green", "blue", "loud"]
MASSES = (0.1, 0.2, 0.6, 0.1)


def example(identity: str = "r/1", *, label: int = 2) -> Example:
    choice = Ask("colour", "choice", "Which colour?", list(OPTIONS), label)
    return Example(identity, "colours", "The sky.", (choice, Ask("up", "noul", "Is it up?", ["no", "yes"], 1)))


def with_choice(**changes: object) -> Example:
    plain = example()
    return dataclasses.replace(plain, asks=(dataclasses.replace(plain.asks[0], **changes),))  # type: ignore[arg-type]


def seeds() -> st.SearchStrategy[int]:
    return st.integers(0, 10_000)


@given(seeds(), st.integers(0, 4))
def test_a_record_meets_the_same_fate_whenever_it_is_asked_for(seed: int, epoch: int) -> None:
    chances = Augmentation(none_pair=0.5)
    first = augment(example(), chances, seed=seed, epoch=epoch)
    augment(example("another"), chances, seed=seed, epoch=epoch)
    assert augment(example(), chances, seed=seed, epoch=epoch) == first


@given(seeds(), st.integers(0, 3))
def test_the_label_follows_its_option_or_is_a_none_that_took_its_place(seed: int, label: int) -> None:
    ask = augment(example(label=label), Augmentation(), seed=seed, epoch=0).variants[0].asks[0]
    if OPTIONS[label] in ask.options:
        assert ask.options[ask.label] == OPTIONS[label]
        added = set(ask.options) - set(OPTIONS)
        assert len(added) <= 1 and added <= {*NONE_OPTIONS, *DISTRACTORS}
    else:
        assert ask.options[ask.label] in NONE_OPTIONS
        assert len(ask.options) == len(OPTIONS)


@given(seeds())
def test_yes_no_questions_are_left_alone(seed: int) -> None:
    assert augment(example(), Augmentation(), seed=seed, epoch=0).variants[0].asks[1] == example().asks[1]


@given(seeds())
def test_soft_targets_and_teachers_are_only_shuffled_together_with_their_options(seed: int) -> None:
    chances = Augmentation(none=0.4, none_distract=0.3, distract=0.3, none_pair=1.0)
    changed = augment(with_choice(target=MASSES, teacher=MASSES), chances, seed=seed, epoch=0)
    assert not changed.has_pair
    ask = changed.variants[0].asks[0]
    expected = dict(zip(OPTIONS, MASSES, strict=True))
    assert ask.target is not None and dict(zip(ask.options, ask.target, strict=True)) == expected
    assert ask.teacher is not None and dict(zip(ask.options, ask.teacher, strict=True)) == expected


@given(seeds())
def test_a_question_whose_options_changed_has_no_teacher(seed: int) -> None:
    ask = augment(with_choice(teacher=MASSES), Augmentation(), seed=seed, epoch=0).variants[0].asks[0]
    assert (ask.teacher is not None) == (set(ask.options) == set(OPTIONS))


@given(seeds())
def test_the_siblings_of_a_none_pair_differ_in_the_right_option_alone(seed: int) -> None:
    _, present, absent = augment(example(), Augmentation(none_pair=1.0), seed=seed, epoch=0).variants
    assert len(present.asks) == len(absent.asks) == 1
    with_answer, without = present.asks[0], absent.asks[0]
    assert with_answer.options[with_answer.label] == OPTIONS[2]
    assert [option for option in with_answer.options if option != OPTIONS[2]] == without.options
    assert without.options[without.label] in NONE_OPTIONS


def test_no_pair_is_made_of_a_question_with_two_options() -> None:
    two = Example("r/1", "colours", "", (Ask("q", "choice", "", ["a", "b"], 0),))
    assert not any(augment(two, Augmentation(none_pair=1.0), seed=seed, epoch=0).has_pair for seed in range(50))


def test_a_none_option_that_is_there_already_is_not_added_again() -> None:
    names = list(dict.fromkeys(option.partition(":")[0] for option in NONE_OPTIONS))
    full = Example("r/1", "s", "", (Ask("q", "choice", "", names, 3),))
    chances = Augmentation(none=0.5, none_distract=0.5, distract=0.0, none_pair=1.0)
    for seed in range(20):
        found = augment(full, chances, seed=seed, epoch=0)
        assert sorted(found.variants[0].asks[0].options) == sorted(names)
        assert not found.has_pair


def test_a_limit_on_states_takes_pairs_away_and_changes_nothing_else() -> None:
    free = Augmentation(none_pair=0.5)
    held = Augmentation(none_pair=0.5, none_pair_max_state=100)
    for seed in range(40):
        plain = augment(example(), free, seed=seed, epoch=0).variants[0]
        short = augment(example(), held, seed=seed, epoch=0, state_tokens=100)
        long = augment(example(), held, seed=seed, epoch=0, state_tokens=101)
        assert short.variants[0] == long.variants[0] == plain
        assert not long.has_pair
    assert any(augment(example(), held, seed=seed, epoch=0, state_tokens=100).has_pair for seed in range(40))


def test_each_thing_happens_about_as_often_as_it_should() -> None:
    chances = Augmentation(none=0.2, none_distract=0.3, distract=0.1)
    asks = [augment(example(f"r/{n}"), chances, seed=0, epoch=0).variants[0].asks[0] for n in range(4000)]
    answers_none = sum(OPTIONS[2] not in ask.options for ask in asks)
    distracted_none = sum(OPTIONS[2] in ask.options and bool(set(ask.options) & set(NONE_OPTIONS)) for ask in asks)
    distracted = sum(bool(set(ask.options) & set(DISTRACTORS)) for ask in asks)
    for count, share in ((answers_none, 0.2), (distracted_none, 0.3), (distracted, 0.1)):
        assert abs(count / 4000 - share) < 0.03  # four standard deviations


@given(seeds())
def test_a_second_order_says_where_every_option_went(seed: int) -> None:
    other, places = permuted(example(), seed=seed, epoch=1, share=1.0)
    assert [other.asks[0].options[place] for place in places[0]] == OPTIONS
    assert other.asks[0].options[other.asks[0].label] == OPTIONS[2]
    assert places[1] == () and other.asks[1] == example().asks[1]


def test_nothing_is_permuted_at_a_share_of_zero() -> None:
    assert permuted(example(), seed=3, epoch=0, share=0.0) == (example(), ((), ()))
