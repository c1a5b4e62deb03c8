"""One meaning per option: the same type and the same help in every command."""

from collections import defaultdict

import click
import pytest

from dissensus.cli import VERBS, cli
from dissensus.cli import verb as options
from dissensus.cli.option_types import DECLARED, SPELLINGS
from dissensus.peerannot import commands as peerannot

from ..support import run


def commands():
    """Yield every command with its name, also those of groups."""
    for verb in VERBS:
        command = cli.get_command(click.Context(cli), verb)
        below = command.commands if isinstance(command, click.Group) else {"": command}
        for name, one in below.items():
            yield f"{verb} {name}".strip(), one


def shown_options():
    """Return the options by flag: those that help shows, with the commands that have them."""
    found = defaultdict(list)
    for name, command in commands():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                for flag in (*parameter.opts, *parameter.secondary_opts):
                    if flag.startswith("--"):
                        found[flag].append((name, parameter))
    return found


OPTIONS = shown_options()


@pytest.mark.parametrize("flag", OPTIONS)
def test_an_option_has_one_type_and_one_help(flag):
    first_name, first = OPTIONS[flag][0]
    for name, option in OPTIONS[flag]:
        where = f"{flag} of {name} and {first_name}"
        assert option.help == first.help, where
        assert option.type.to_info_dict() == first.type.to_info_dict(), where
        assert option.is_flag == first.is_flag, where


@pytest.mark.parametrize("flag", OPTIONS)
def test_help_is_a_short_sentence(flag):
    text = OPTIONS[flag][0][1].help
    assert text[0].isupper()
    assert text[-1] in ".…"
    assert len(text) <= 90


def test_every_option_of_the_table_is_used():
    used = {parameter.name for _, command in commands() for parameter in command.params}
    used |= {flag.lstrip("-").replace("-", "_") for flag in OPTIONS}
    assert set(DECLARED) - used == set()


def test_every_command_takes_its_options_from_the_table():
    for name, command in commands():
        for parameter in command.params:
            ours = isinstance(parameter, (options.Option, click.Argument))
            assert ours or parameter.hidden, f"{parameter.name} of {name}"


@pytest.mark.parametrize(
    ("flag", "verbs"),
    {
        "--scale": [
            "aggregate",
            "agree",
            "check",
            "compare",
            "evaluate",
            "identify",
            "next",
            "report",
        ],
        "--confidence": ["agree"],
        "--truth": ["compare", "evaluate", "next", "report"],
        "--gold": ["aggregate", "check", "compare", "convert", "identify", "report"],
        "--annotators": ["judge", "report", "tendency evaluate", "tendency fit"],
        "--among": ["next", "tendency map", "tendency predict"],
        "--n-annotators": ["meta fit", "simulate"],
        "--by": ["judge", "report"],
        "--budget": ["meta adapt", "next"],
        "--target": ["next"],
        "--repeats": ["agree", "compare", "evaluate", "recover evaluate"],
        "--labels": ["train"],
        "--load": ["meta adapt", "recover evaluate", "tendency evaluate"],
    }.items(),
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_option_is_where_its_meaning_is(flag, verbs):
    have = sorted(name for name, _ in OPTIONS[flag])
    assert [verb for verb in verbs if verb not in have] == []
    if flag in ("--annotators", "--among", "--n-annotators", "--by", "--labels", "--load"):
        assert have == verbs


# What peerannot's commands take; see PEERS.md.
PEERANNOT = {
    "aggregate": "-s --strategy --hard --metadata_path --answers-file --path-remove",
    "aggregate-deep": "-K --n-classes -o --output-name -s --model --answers --img-size "
    "--pretrained --n-epochs --lr --momentum --decay --scheduler -m --milestones --n-params "
    "--lr-decay --num-workers --batch-size -optim --optimizer --data-augmentation --path-remove "
    "--metadata_path --freeze --seed",
    "train": "-o -K --labels --optimizer --model --metadata_path --img-size --data-augmentation "
    "--path-remove --pretrained --n-epochs --lr --momentum --decay --scheduler --milestones "
    "--n-params --lr-decay --num-workers --batch-size --freeze --seed",
    "identify": "-s --method -K --labels --hard-labels --use-pleiss --model --n-epochs --alpha "
    "--topk --n-params --lr --pretrained --momentum --metadata_path --decay --img-size "
    "--maxiter-dawid-skene -optim --data-augmentation --freeze --matrix-file --seed",
    "simulate": "--n-worker --n-task -K --folder -s --matrix-file -r --ratio --ratio-diff --random "
    "-wl --workerload -fb --feedback --imbalance-votes --seed --verbose",
    "install": "--no-task --answers-format --answers --metadata --label-names --files-path "
    "--train-path --test-ground-truth-format --test-ground-truth --test-path --val-path",
}


@pytest.mark.parametrize(("name", "flags"), PEERANNOT.items(), ids=lambda value: value.split()[0])
def test_options_of_peerannot_are_taken(name, flags):
    command = dict(commands())[name]
    context = click.Context(command, **cli.context_settings)
    parser = command.make_parser(context)
    taken = {*parser._short_opt, *parser._long_opt}
    assert set(flags.split()) - taken == set()


def test_a_default_that_is_computed_is_none_until_then():
    for name, command in commands():
        values = command.make_context(name, ["x", "y"], resilient_parsing=True).params
        for parameter in command.params:
            if isinstance(getattr(parameter, "show_default", None), str):
                assert not values[parameter.name], f"{parameter.name} of {name}"
                assert parameter.multiple or values[parameter.name] is None


def test_numeric_is_another_word_for_interval():
    option = OPTIONS["--scale"][0][1]
    assert option.type.convert("numeric", option, None) == "interval"
    with pytest.raises(click.BadParameter):
        option.type.convert("other", option, None)


@pytest.mark.parametrize("name", ["train", "aggregate-deep", "identify"])
def test_an_option_of_peerannot_without_effect_says_so(name):
    done = run(name, "nowhere.csv", "--labels", "nowhere.csv", "--num-workers", 4)
    if name == "aggregate-deep":
        done = run(name, "nowhere.csv", "--num-workers", 4)
    assert b"--num-workers has no effect: threads read the inputs" in done.stderr


def test_no_other_spelling_is_hidden():
    hidden = {flag for flags in SPELLINGS.values() for flag in flags}
    for name, command in commands():
        own = {
            f"--{flag}" for flags in peerannot.SPELLINGS.get(name, {}).values() for flag in flags
        }
        for option in command.params:
            assert {*getattr(option, "aliases", ())} <= hidden | own, f"{option.name} of {name}"
            unused = isinstance(option, click.Option) and option.hidden
            assert not unused or option.opts[0].lstrip("-") in peerannot.WITHOUT_EFFECT, option.name


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("aggregate", "a.csv", "--hard"), b"--hard is for data set folders"),
        (("aggregate", "a.csv", "--metadata", "m.json"), b"--metadata is for data set folders"),
        (("watch", "--label-studio", "http://x", "--project", "1", "-o", "l.csv",
          "--missing", "drop"), b"--missing and --label-studio exclude each other"),
    ],
)  # fmt: skip
def test_an_option_that_would_have_no_effect_is_refused(words, problem, tmp_path):
    (tmp_path / "a.csv").write_text("item,annotator,label\na,x,0\na,y,0\nb,x,1\n")
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert problem in done.stderr
