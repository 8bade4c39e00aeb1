# SPDX-License-Identifier: Apache-2.0
"""The compiler's first error is told at a line of the user's own, whatever macro or inlined function it lies in."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.build.compiler import first_error
from howdah.build.module_build import ModuleFailure, blame

_BUG = """\
In file included from <command-line>:
tcp_a.c: In function ‘go’:
/k/include/linux/compiler_types.h:543:45: error: call to ‘__compiletime_assert_670’ declared with attribute error: \
BUILD_BUG_ON failed: sizeof(struct big) > ICSK_CA_PRIV_SIZE
  543 |         _compiletime_assert(condition, msg, __compiletime_assert_, __COUNTER__)
      |                                             ^
/k/include/linux/compiler_types.h:524:25: note: in definition of macro ‘__compiletime_assert’
  524 |                         prefix ## suffix();                             \\
      |                         ^~~~~~
/k/include/linux/build_bug.h:50:9: note: in expansion of macro ‘BUILD_BUG_ON_MSG’
   50 |         BUILD_BUG_ON_MSG(condition, "BUILD_BUG_ON failed: " #condition)
      |         ^~~~~~~~~~~~~~~~
"""
_BUG_HERE = f"""\
{_BUG}tcp_a.c:5:9: note: in expansion of macro ‘BUILD_BUG_ON’
    5 |         BUILD_BUG_ON(sizeof(struct big) > ICSK_CA_PRIV_SIZE);
      |         ^~~~~~~~~~~~
"""
_BUG_IN_OWN_MACRO = f"""\
{_BUG}mine.h:1:23: note: in expansion of macro ‘BUILD_BUG_ON’
    1 | #define CHECK_SIZE(x) BUILD_BUG_ON(sizeof(x) > 4)
      |                       ^~~~~~~~~~~~
tcp_a.c:6:9: note: in expansion of macro ‘CHECK_SIZE’
    6 |         CHECK_SIZE(x);
      |         ^~~~~~~~~~
"""
_BUG_IN_INLINED = _BUG_HERE.replace(
    "tcp_a.c: In function ‘go’:", "In function ‘check’,\n    inlined from ‘go’ at tcp_a.c:9:2:"
)
_STATIC_ASSERT = """\
In file included from /k/include/linux/container_of.h:5,
                 from /k/include/linux/module.h:12,
                 from mine.h:1,
                 from tcp_a.c:1:
/k/include/linux/build_bug.h:78:41: error: static assertion failed: "too big"
   78 | #define __static_assert(expr, msg, ...) _Static_assert(expr, msg)
      |                                         ^~~~~~~~~~~~~~
/k/include/linux/build_bug.h:77:34: note: in expansion of macro ‘__static_assert’
   77 | #define static_assert(expr, ...) __static_assert(expr, ##__VA_ARGS__, #expr)
      |                                  ^~~~~~~~~~~~~~~
tcp_a.c:3:1: note: in expansion of macro ‘static_assert’
    3 | static_assert(sizeof(struct big) < 20, "too big");
      | ^~~~~~~~~~~~~
/k/include/linux/build_bug.h:78:41: error: static assertion failed: "sizeof(struct big) < 20"
tcp_a.c:4:1: note: in expansion of macro ‘static_assert’
"""
_INLINED = """\
tcp_a.c:3:13: warning: ‘b’ defined but not used [-Wunused-variable]
In file included from ./arch/um/include/generated/asm/preempt.h:1,
                 from /k/include/linux/module.h:17,
                 from mine.h:1,
                 from tcp_a.c:1:
In function ‘check_copy_size’,
    inlined from ‘copy_from_user’ at /k/include/linux/uaccess.h:207:7,
    inlined from ‘f’ at tcp_a.c:7:6,
    inlined from ‘go’ at tcp_a.c:10:37:
/k/include/linux/thread_info.h:246:25: error: call to ‘__bad_copy_to’ declared with attribute error: \
copy destination size is too small
  246 |                         __bad_copy_to();
      |                         ^~~~~~~~~~~~~~~
"""
_OWN_MACRO = """\
tcp_a.c: In function ‘f’:
tcp_a.c:2:21: error: ‘struct tcp_sock’ has no member named ‘no_member’
    2 | #define SET(tp) (tp)->no_member = 1
      |                     ^~
tcp_a.c:5:9: note: in expansion of macro ‘SET’
"""
_OWN_HEADER = """\
In file included from tcp_a.c:2:
mine.h: In function ‘bad_inline’:
mine.h:2:45: error: ‘undeclared_thing’ undeclared (first use in this function)
"""
_KERNEL_HEADER = """\
In file included from /k/include/net/generic.h:4,
                 from ./arch/um/include/generated/asm/preempt.h:1,
                 from mine.h:8,
                 from tcp_a.c:27:
/k/include/net/generic.h: In function ‘net_generic’:
/k/include/net/generic.h:45:33: error: invalid use of undefined type ‘const struct net’
"""


def _is_own(file: str) -> bool:
    return not file.startswith(("/", "./"))


@pytest.mark.parametrize(
    ("output", "place", "text", "said"),
    [
        (_BUG_HERE, "tcp_a.c:5", "BUILD_BUG_ON failed: sizeof(struct big) > ICSK_CA_PRIV_SIZE", "BUILD_BUG_ON(sizeof"),
        (_BUG_IN_OWN_MACRO, "tcp_a.c:6", "BUILD_BUG_ON failed", "CHECK_SIZE(x);"),
        (_BUG_IN_INLINED, "tcp_a.c:5", "BUILD_BUG_ON failed", "BUILD_BUG_ON(sizeof"),
        (_STATIC_ASSERT, "tcp_a.c:3", 'static assertion failed: "too big"', "static_assert(sizeof(struct big) < 20"),
        (_INLINED, "tcp_a.c:7", "copy destination size is too small", "inlined from ‘f’ at tcp_a.c:7:6"),
        (_OWN_MACRO, "tcp_a.c:2", "has no member named", "#define SET(tp)"),
        (_OWN_HEADER, "mine.h:2", "‘undeclared_thing’ undeclared", "mine.h:2:45"),
        (_KERNEL_HEADER, "mine.h:8", "invalid use of undefined type", "/k/include/net/generic.h:45"),
        ("/k/include/a.h:3:1: error: nobody's\n", "/k/include/a.h:3", "nobody's", "a.h:3"),
    ],
)
def test_the_line_to_blame(output: str, place: str, text: str, said: str) -> None:
    error = first_error(output.splitlines(), _is_own)
    assert error is not None
    assert f"{error.file}:{error.line}" == place
    assert text in error.text
    assert "declared with attribute" not in error.text
    assert said in error.said


def test_the_next_errors_macro_is_not_the_first_ones() -> None:
    lines = ["/k/a.h:1:1: error: first", "/k/a.h:2:1: error: second", "tcp_a.c:4:1: note: in expansion of macro ‘X’"]
    error = first_error(lines, _is_own)
    assert error is not None
    assert error.file == "/k/a.h"


def test_no_error_is_none() -> None:
    assert first_error(["tcp_a.c:3:13: warning: unused", "make: *** Error 1"], _is_own) is None


def test_in_a_kernel_tree_a_macro_is_told_at_its_user_and_a_header_where_it_is() -> None:
    def is_source(file: str) -> bool:
        return file.endswith(".c")

    bug = first_error(_BUG_HERE.replace("tcp_a.c", "/t/net/ipv4/tcp_cubic.c").splitlines(), is_source)
    assert bug is not None
    assert (bug.file, bug.line) == ("/t/net/ipv4/tcp_cubic.c", 5)
    header = first_error(_KERNEL_HEADER.splitlines(), is_source, blame_include=False)
    assert header is not None
    assert (header.file, header.line) == ("/k/include/net/generic.h", 45)


def _blame(lines: list[str], directory: Path) -> ModuleFailure:
    listed = ["howdah-module howdah_own_tcp_a.o = tcp_a.o replace/replace.o"]
    ((module, failure),) = blame([*listed, *lines], "6.12.1", directory, {})
    assert module == "howdah_own_tcp_a.o"
    return failure


def test_a_module_is_called_as_its_file_is(tmp_path: Path) -> None:
    failure = _blame(
        [*_BUG_HERE.splitlines(), "make[3]: *** [/k/scripts/Makefile.build:291: tcp_a.o] Error 1"], tmp_path
    )
    assert (failure.module, failure.file, failure.line) == ("tcp_a", "tcp_a.c", 5)
    assert failure.what.startswith("the module tcp_a does not compile against kernel 6.12.1: BUILD_BUG_ON failed")


def test_the_users_own_include_directory_is_told_from_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include/mine.h").write_text("")
    stopped = "make[3]: *** [tcp_a.o] Error 1"
    own = _blame(["./include/mine.h:3:1: error: x", stopped], tmp_path)
    assert own.file == "./include/mine.h"
    lines = ["In file included from tcp_a.c:2:", "./include/linux/tcp.h:3:1: error: x", stopped]
    assert _blame(lines, tmp_path).file == "tcp_a.c"


@pytest.mark.parametrize(
    ("line", "what", "place"),
    [
        ('ERROR: modpost: "not_there" [howdah_own_tcp_a.ko] undefined!', "does not export: not_there", 6),
        ("ERROR: modpost: missing MODULE_LICENSE() in howdah_own_tcp_a.o", "missing MODULE_LICENSE() in tcp_a.o", None),
        (
            "FATAL: modpost: GPL-incompatible module howdah_own_tcp_a.ko uses GPL-only symbol 'x'",
            "GPL-incompatible module tcp_a.ko uses GPL-only symbol 'x'",
            None,
        ),
    ],
)
def test_what_the_linker_refuses_names_the_module_and_the_use(
    tmp_path: Path, line: str, what: str, place: int | None
) -> None:
    lines = ["int not_there(int);", "extern int not_there(int);", "/* not_there is", " * not_there */", "{"]
    (tmp_path / "tcp_a.c").write_text("\n".join([*lines, "\treturn not_there(1);", "}"]))
    failure = _blame([line, "make[2]: *** [/k/scripts/Makefile.modpost:145: Module.symvers] Error 1"], tmp_path)
    assert what in failure.what
    assert (failure.file, failure.line) == ("tcp_a.c" if place else None, place)
