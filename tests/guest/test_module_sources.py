# SPDX-License-Identifier: Apache-2.0
"""Modules as people have them build for the guest's kernel; one that cannot be right is told when it is built."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.build import modules
from howdah.build.cache import Cache, content_key
from howdah.build.module_sources import Extras
from howdah.build.modules import ModuleSet, modules_recipe, project_sources, provide_modules
from howdah.build.tools import compiler_version, linker_version
from howdah.engine.uml.build import Built
from howdah.profile.ready import registered_by
from tests import remembered
from tests.guest.guest_kit import build_or_skip
from tests.guest.guest_run import ignore
from tests.guest.remembered_run import launcher_sha256

pytestmark = pytest.mark.guest

SOURCE = """\
#include <linux/module.h>
#include <net/tcp.h>
INCLUDES
static void grow(struct sock *sk, u32 ack, u32 acked)
{
	BODY
	tcp_reno_cong_avoid(sk, ack, acked);
}
static struct tcp_congestion_ops ops = {
	.name = "NAME", .owner = THIS_MODULE, .cong_avoid = grow, OPS
	.ssthresh = tcp_reno_ssthresh, .undo_cwnd = tcp_reno_undo_cwnd,
};
static int __init start(void) { return tcp_register_congestion_control(&ops); }
static void __exit stop(void) { tcp_unregister_congestion_control(&ops); }
module_init(start);
module_exit(stop);
MODULE_LICENSE("GPL");
"""


def once(test: Callable[..., None]) -> Callable[..., None]:
    """Not again while all that decides what it finds is the same: a module takes a compiler two seconds."""

    @functools.wraps(test)
    def compiled(built: Built, tmp_path: Path, **given: Any) -> None:
        ours = modules_recipe(built.kernel, project_sources())  # each is linked with some of it
        made_with = (built.kernel.key, built.tools.key, ours, compiler_version(), linker_version())
        tested = (test.__name__, repr(sorted(given.items())), Path(__file__).read_bytes())
        key = content_key(launcher_sha256(), *made_with, *tested)
        remembered.once("module-sources", key, lambda: test(built, tmp_path, **given), says=test.__name__)

    return compiled


@pytest.fixture(scope="module")
def built() -> Built:
    return build_or_skip()


@pytest.fixture(autouse=True)
def _without_what_is_built_already(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project's modules, and the tools that start a build, would be built anew for each test's cache."""
    (tmp_path / "none").mkdir()
    monkeypatch.setattr(modules, "PROJECT_MODULES", tmp_path / "none")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "tool").symlink_to(built.tools.directory.parent)


def _write(file: Path, *, name: str = "mine", includes: str = "", body: str = "", ops: str = "") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = SOURCE.replace("NAME", name).replace("INCLUDES", includes).replace("BODY", body).replace("OPS", ops)
    file.write_text(text)
    return file


def _provide(built: Built, tmp_path: Path, *wanted: Path, extras: Extras | None = None) -> ModuleSet:
    more = {str(wanted[0]): extras} if extras else {}
    return provide_modules(built.kernel, [str(path) for path in wanted], ignore, Cache(tmp_path / "cache"), more)


@once
def test_headers_are_found_wherever_they_are(built: Built, tmp_path: Path) -> None:
    """Beside it, above it, above a header that is above it; in a directory whose name make cannot say."""
    place = tmp_path / "mein Ordner/größe"
    includes = '#include "inc/low.h"\n#include "../high.h"\n#include "sibling.c"'
    source = _write(place / "tcp_mine.c", includes=includes, body="(void)(LOW + HIGH + HIGHEST + sibling());")
    (place / "inc").mkdir()
    (place / "inc/low.h").write_text("#define LOW 1\n")
    (place.parent / "high.h").write_text('#include "../highest.h"\n#define HIGH 2\n')
    (tmp_path / "highest.h").write_text("#define HIGHEST 3\n")
    (place / "sibling.c").write_text("static int sibling(void) { return 4; }\n")
    found = _provide(built, tmp_path, source)
    assert found.failed == {}
    assert registered_by(found.built["tcp_mine"].file) == ["mine"]


@once
def test_what_is_compiled_of_other_headers_is_another_module(built: Built, tmp_path: Path) -> None:
    """The kernel's srcversion knows no header of another directory. A run with the other one would be the same run.

    Two builds of the same are one module, wherever they were made.
    """
    source = _write(tmp_path / "mine/tcp_mine.c", includes='#include "../up.h"', body="barrier_data(GAIN);")
    found = []
    for gain in ("1", "2"):
        (tmp_path / "up.h").write_text(f"static int *const GAIN = (int *){gain};\n")
        found.append(_provide(built, tmp_path, source).built["tcp_mine"])
    assert found[0].srcversion == found[1].srcversion
    assert found[0].identity != found[1].identity
    again = _provide(built, tmp_path / "elsewhere", source).built["tcp_mine"]
    assert again.file != found[1].file
    assert again.identity == found[1].identity


@once
def test_an_error_is_told_where_the_person_has_the_file(built: Built, tmp_path: Path) -> None:
    source = _write(tmp_path / "deep/down/tcp_mine.c", includes='#include "../../up.h"')
    (tmp_path / "up.h").write_text("struct up {\n\tu32 a\n\tu32 b;\n};\n")
    assert _provide(built, tmp_path, source).failed["tcp_mine"].where == f"{tmp_path / 'up.h'}:3"
    source = _write(tmp_path / "deep/down/tcp_mine.c", includes='#include "../ok.h"', body="mistake();")
    (tmp_path / "deep/ok.h").write_text("\n")
    assert _provide(built, tmp_path, source).failed["tcp_mine"].where == f"{source}:6"


@once
def test_include_define_and_sources(built: Built, tmp_path: Path) -> None:
    body = "(void)FROM_AFAR; BUILD_BUG_ON(GAIN != 7); other();"
    source = _write(tmp_path / "src/main.c", includes="#include <afar.h>\nvoid other(void);", body=body)
    (tmp_path / "headers/inner").mkdir(parents=True)
    (tmp_path / "headers/afar.h").write_text("#include <inner/deep.h>\n#define FROM_AFAR DEEP\n")
    (tmp_path / "headers/inner/deep.h").write_text("#define DEEP 1\n")
    other = tmp_path / "elsewhere/other.c"
    other.parent.mkdir()
    other.write_text("void other(void);\nvoid other(void) { }\n")
    extras = Extras((tmp_path / "headers",), {"GAIN": "7"}, (other,))
    found = _provide(built, tmp_path, source, extras=extras)
    assert found.failed == {}
    assert registered_by(found.built["main"].file) == ["mine"]
    assert (
        "BUILD_BUG_ON"
        in _provide(built, tmp_path, source, extras=Extras((tmp_path / "headers",), {"GAIN": "8"}, (other,)))
        .failed["main"]
        .what
    )


@once
def test_a_directory_makes_its_own_header_and_reaches_above_itself(built: Built, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    _write(
        place / "main.c", includes='#include "version.h"\n#include "../shared.h"\nvoid other(void);', body="other();"
    )
    (tmp_path / "shared.h").write_text("#define SHARED 1\n")
    (place / "other.c").write_text('#include "version.h"\nvoid other(void);\nvoid other(void) { (void)VERSION; }\n')
    (place / "version.in").write_text("#define VERSION @V@\n")
    (place / "Makefile").write_text(
        "obj-m := tcp_mine.o\ntcp_mine-objs := main.o \\\n\tother.o\n"
        "version.h: version.in\n\tsed s/@V@/7/ version.in > version.h\n"
        "all: version.h\n\tmake -C /lib/modules/x/build M=$(PWD) modules\n"
    )
    found = _provide(built, tmp_path, place)
    assert found.failed == {}
    assert registered_by(found.built["tcp_mine"].file) == ["mine"]
    assert not (place / "version.h").exists(), "what a person has stays as it is"


@once
def test_a_header_that_nothing_makes_is_told(built: Built, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    source = _write(place / "tcp_mine.c", includes='#include "version.h"')
    (place / "Makefile").write_text("obj-m := tcp_mine.o\nversion.h:\n\tfalse\n")
    error = _provide(built, tmp_path, place).failed["tcp_mine"]
    assert (error.where, "version.h: No such file" in error.what) == (f"{source}:3", True)


@once
def test_floating_point_is_refused_at_its_line(built: Built, tmp_path: Path) -> None:
    body = "double g = 1.25 * tcp_snd_cwnd(tcp_sk(sk)); if (g > 100.0) tcp_sk(sk)->snd_ssthresh = (u32)g;"
    source = _write(tmp_path / "tcp_mine.c", body=body)
    error = _provide(built, tmp_path, source).failed["tcp_mine"]
    assert "no floating point" in error.what
    assert error.where == f"{source}:6"


@pytest.mark.parametrize(("words", "fits"), [(13, True), (14, False)])
@once
def test_a_private_struct_fits_or_is_told(built: Built, tmp_path: Path, words: int, fits: bool) -> None:
    """ICSK_CA_PRIV_SIZE is 13 words, include/net/inet_connection_sock.h."""
    body = "struct own *own = inet_csk_ca(sk); own->a[0] += acked;"
    source = _write(tmp_path / "tcp_mine.c", includes=f"struct own {{ u64 a[{words}]; }};", body=body)
    found = _provide(built, tmp_path, source)
    assert ("tcp_mine" in found.built) is fits
    if not fits:
        error = found.failed["tcp_mine"]
        assert "struct own is longer than the 104 bytes" in error.what
        assert error.where == f"{source}:6"


@pytest.mark.parametrize(
    ("includes", "ops", "words"),
    [
        (
            "static void control(struct sock *sk, const struct rate_sample *rs) { }",
            ".cong_control = control,",
            "since Linux 6.10.*--kernel debian-6.1",
        ),
        ("static u32 goal(struct sock *sk) { return 2; }", ".tso_segs_goal = goal,", "min_tso_segs since Linux 4.17"),
        (
            "static u32 segs(struct sock *sk, u32 mss) { return 2; }",
            ".tso_segs = segs,",
            r"min_tso_segs\(sk\) in its place.*Google's BBR",
        ),
    ],
)
@once
def test_what_the_kernel_has_changed_since_is_named(
    built: Built, tmp_path: Path, includes: str, ops: str, words: str
) -> None:
    source = _write(tmp_path / "tcp_mine.c", includes=includes, ops=ops)
    error = _provide(built, tmp_path, source).failed["tcp_mine"]
    with pytest.raises(type(error), match=words):
        raise error


@once
def test_a_name_without_an_end_is_told(built: Built, tmp_path: Path) -> None:
    """A macro hides it from who reads the source."""
    source = _write(tmp_path / "tcp_mine.c", includes='#define PASTE(a) "sixteen_chars_a" #a', name='" PASTE(b) "')
    error = _provide(built, tmp_path, source).failed["tcp_mine"]
    assert "'sixteen_chars_ab'" in error.what
    assert "at most 15" in error.what


@once
def test_ready_ones_are_told_first_and_fail_alone(built: Built, tmp_path: Path) -> None:
    good = _write(tmp_path / "tcp_good.c", name="good")
    ready = _provide(built, tmp_path, good).built["tcp_good"].file
    stale = tmp_path / "tcp_stale.ko"
    stale.write_bytes(ready.read_bytes().replace(b"vermagic=6.", b"vermagic=5."))
    (tmp_path / "tcp_none.ko").write_bytes(b"no module at all")
    shutil.copyfile(ready, tmp_path / "tcp_ready.ko")
    other = _write(tmp_path / "tcp_other.c", name="other")
    said: list[str] = []
    wanted = [str(other), str(stale), str(tmp_path / "tcp_none.ko"), str(tmp_path / "tcp_ready.ko")]
    found = provide_modules(
        built.kernel, wanted, lambda what, _done, _all: said.append(what), Cache(tmp_path / "cache")
    )
    assert {*found.built} == {"tcp_other", "tcp_ready"}
    assert {*found.failed} == {"tcp_stale", "tcp_none"}
    assert "built for another kernel" in found.failed["tcp_stale"].what
    assert ["not built" in line for line in said[:3]] == [True, True, False]


@once
def test_the_kernels_own_controls_that_are_modules_are_there_and_used_by_name(built: Built, tmp_path: Path) -> None:
    found = _provide(built, tmp_path)
    assert {"tcp_bic", "tcp_yeah"} <= {*found.of_kernel}
    assert [module.name for module in found.choose([], ["bic", "reno", "cubic"])] == ["tcp_bic"]
    assert found.choose([], []) == []
    assert "tcp_bic" not in found.built, "no run loads it that does not name it"
