"""Fine-tunings as low-rank differences: near where they can't be exact, refused where they don't fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.low_rank import LEFT, RIGHT, WHOLE, factor, merge, read_delta, save_delta

torch = pytest.importorskip("torch")


def test_a_hand_made_difference_is_added_to_its_matrix() -> None:
    base = {"w": torch.zeros(3, 2), "b": torch.ones(3)}
    delta = {
        LEFT + "w": torch.tensor([[1.0], [2.0], [0.0]]).half(),
        RIGHT + "w": torch.tensor([[10.0, 1.0]]).half(),
        WHOLE + "b": torch.tensor([5.0, 6.0, 7.0]),
    }

    merged = merge(base, delta)

    assert merged["w"].tolist() == [[10.0, 1.0], [20.0, 2.0], [0.0, 0.0]]
    assert merged["b"].tolist() == [5.0, 6.0, 7.0]
    assert base["w"].tolist() == [[0.0, 0.0]] * 3


def test_a_difference_of_low_rank_comes_back_whole() -> None:
    torch.manual_seed(0)
    base = {"w": torch.randn(40, 30), "same": torch.randn(4, 4), "b": torch.randn(40)}
    tuned = {
        "w": base["w"] + torch.randn(40, 3) @ torch.randn(3, 30),
        "same": base["same"].clone(),
        "b": base["b"] + 1,
        "head": torch.randn(3, 30),
    }

    delta = factor(base, tuned, rank=3)

    assert set(delta) == {LEFT + "w", RIGHT + "w", WHOLE + "b", WHOLE + "head"}
    assert delta[LEFT + "w"].dtype == torch.float16
    merged = merge(base, delta)
    assert torch.allclose(merged["w"], tuned["w"], atol=0.02)
    assert torch.equal(merged["b"], tuned["b"])
    assert torch.equal(merged["head"], tuned["head"])
    assert torch.equal(merged["same"], base["same"])


def test_a_lower_rank_keeps_the_largest_part() -> None:
    torch.manual_seed(0)
    base = {"w": torch.zeros(40, 30)}
    tuned = {"w": torch.randn(40, 30)}

    errors = [float((merge(base, factor(base, tuned, rank=rank))["w"] - tuned["w"]).norm()) for rank in (1, 4, 14)]

    values = torch.linalg.svdvals(tuned["w"])
    expected = [float(values[rank:].square().sum().sqrt()) for rank in (1, 4, 14)]
    assert errors == pytest.approx(expected, rel=1e-3)


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    delta = {LEFT + "w": torch.ones(3, 1).half(), RIGHT + "w": torch.ones(1, 2).half(), WHOLE + "b": torch.ones(3)}

    save_delta(tmp_path / "delta.safetensors", delta)
    read = read_delta(tmp_path / "delta.safetensors")

    assert set(read) == set(delta)
    assert all(torch.equal(read[key], delta[key]) and read[key].dtype == delta[key].dtype for key in delta)


def test_other_files_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    path = tmp_path / "delta.safetensors"
    save_file({"w": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="format None"):
        read_delta(path)
    path.write_bytes(b"no tensors at all")
    with pytest.raises(ValueError, match="no safetensors file"):
        read_delta(path)


@pytest.mark.parametrize(
    ("delta", "reason"),
    [
        ({LEFT + "w": torch.ones(3, 1)}, "no right factor"),
        ({RIGHT + "w": torch.ones(1, 2)}, "not a part"),
        ({LEFT + "x": torch.ones(3, 1), RIGHT + "x": torch.ones(1, 2)}, "no tensor in the base"),
        ({LEFT + "w": torch.ones(2, 1), RIGHT + "w": torch.ones(1, 2)}, r"gives \(2, 2\), the base has \(3, 2\)"),
        ({"w": torch.ones(3, 2)}, "not a part"),
        ({WHOLE + "w": torch.full((3, 2), float("nan"))}, "not finite"),
    ],
)
def test_a_difference_that_does_not_fit_is_named(delta: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        merge({"w": torch.zeros(3, 2)}, delta)  # type: ignore[arg-type]
