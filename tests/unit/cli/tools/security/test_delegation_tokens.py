"""kafka-delegation-tokens: what a command line must have."""

import pytest

from penstock.cli.tools.security import delegation_tokens

WHERE = ["--bootstrap-server", "h:1", "--command-config", "f"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([*WHERE], "exactly one action: --create, --renew, --expire or --describe"),
        ([*WHERE, "--create", "--renew"], "exactly one action"),
        (["--create"], 'Missing required argument "[bootstrap-server]"'),
        ([*WHERE[:2], "--describe"], 'Missing required argument "[command-config]"'),
        ([*WHERE, "--create"], 'Missing required argument "[max-life-time-period]"'),
        ([*WHERE, "--renew", "--hmac", "x"], 'Missing required argument "[renew-time-period]"'),
        (
            [*WHERE, "--create", "--max-life-time-period", "-1", "--hmac", "x"],
            'Option "[create]" can\'t be used with option "[hmac]"',
        ),
        ([*WHERE, "--describe", "--hmac", "x"], "can't be used with option"),
    ],
)
def test_a_wrong_command_line_is_told(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        delegation_tokens.main(words)
    assert ended.value.code == 1
    assert sentence in capsys.readouterr().err
