"""The sentences that mistakes are told in."""

from __future__ import annotations

import subprocess
import sys

import pytest

from shiftbed.errors import InputError, MissingExtraError, unknown

KNOWN = ["fog", "frost", "snow", "gaussian_noise", "gaussian_blur"]


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("fgo", "there is no shift 'fgo'; did you mean fog?"),
        ("gaussian", "there is no shift 'gaussian'; did you mean gaussian_blur or gaussian_noise?"),
        (
            "xyz",
            "there is no shift 'xyz'; "
            "choose one of fog, frost, gaussian_blur, gaussian_noise, snow",
        ),
        (
            "",
            "there is no shift ''; choose one of fog, frost, gaussian_blur, gaussian_noise, snow",
        ),
    ],
)
def test_near_names_are_offered(given: str, sentence: str) -> None:
    assert str(unknown("shift", given, KNOWN)) == sentence


def test_the_order_of_the_known_does_not_matter() -> None:
    assert str(unknown("shift", "xyz", reversed(KNOWN))) == str(unknown("shift", "xyz", KNOWN))


def test_a_long_list_is_cut_and_counted() -> None:
    said = str(unknown("model", "xyz", (f"net{i:03d}" for i in range(400))))
    assert said.endswith(
        "net000, net001, net002, net003, net004, net005, net006, net007, net008, "
        "net009, net010, net011 and 388 more"
    )


def test_nothing_to_choose_from() -> None:
    assert str(unknown("set", "a", [])) == "there is no set 'a'; there is none to choose from"


def test_a_missing_extra_says_how_to_get_it() -> None:
    problem = MissingExtraError("a torch model", "torch")
    assert isinstance(problem, InputError)
    said = str(problem)
    assert said == "a torch model needs an extra: pip install 'shiftbed[torch]'"


def test_the_command_line_prints_the_sentence_alone() -> None:
    code = (
        "import sys\n"
        "from shiftbed import cli\n"
        "from shiftbed.errors import InputError\n"
        "def wrong():\n"
        "    raise InputError('two is no colour')\n"
        "cli.app = wrong\n"
        "cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "shiftbed: two is no colour\n"


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    code = (
        "from shiftbed import cli\n"
        "def fault():\n"
        "    raise KeyError('ours')\n"
        "cli.app = fault\n"
        "cli.main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert "KeyError: 'ours'" in done.stderr
