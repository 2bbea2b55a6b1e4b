"""TypeScript, R and Java in code contexts: each where the image has it, and a helpful refusal where not."""

import base64
import shutil

import pytest

import paddock
from test_contexts import Context, events, execute, make, place  # noqa: F401 - a fixture

LANGUAGES = ("typescript", "r", "java")
PROGRAMS = {"typescript": "node", "r": "R", "java": "java"}
SET = {"typescript": "let x: number = 41", "r": "x <- 41", "java": "int x = 41;"}
GET = {"typescript": "x + 1", "r": "x + 1", "java": "x + 1"}
VALUE = {"typescript": "42", "r": "[1] 42", "java": "42"}
PRINT = {"typescript": "console.log('ü'); console.error('e')", "r": "cat('ü\\n'); message('e')",
         "java": "System.out.println(\"ü\"); System.err.println(\"e\");"}
FAIL = {"typescript": "throw new RangeError('bad ü')", "r": "f <- function() stop('bad ü')\nf()",
        "java": "throw new IllegalStateException(\"bad ü\");"}
NAME = {"typescript": "RangeError", "r": "Error", "java": "IllegalStateException"}
BROKEN = {"typescript": "let y: = 5", "r": "x <- )", "java": "int y = \"no\";"}
SPINS = {"typescript": "console.log('go'); for (;;);", "r": "cat('go\\n'); repeat {}",
         "java": "System.out.println(\"go\"); while (true) ;"}
SLEEPS = {"typescript": "console.log('go'); await new Promise(() => {})", "r": "cat('go\\n'); Sys.sleep(100)",
          "java": "System.out.println(\"go\"); Thread.sleep(100000);"}


@pytest.fixture(scope="module", autouse=True)
def programs():
    missing = [name for name in ("node", "R", "jshell") if not shutil.which(name)]
    if missing:
        pytest.skip(f"there is no {missing[0]} (scripts/deps test)")


@pytest.fixture(scope="module")
def contexts(place):  # noqa: F811
    """One of each, in a box that all tests here share: a start of Java takes a second or more."""
    return {language: make(place, language, cwd="/tmp", env={"OF_CONTEXT": "c"}) for language in LANGUAGES}


@pytest.mark.parametrize("language", LANGUAGES)
def test_state_values_and_output(contexts, language):
    it = contexts[language]
    assert it.check(SET[language])["results"] == []
    assert it.text(GET[language]) == VALUE[language]
    answer = it.check(PRINT[language])
    assert (answer["stdout"], answer["stderr"], answer["results"]) == ("ü\n", "e\n", [])


@pytest.mark.parametrize("language", LANGUAGES)
def test_errors(contexts, language):
    it = contexts[language]
    error = it.error(FAIL[language])
    assert (error["name"], error["value"]) == (NAME[language], "bad ü") and "bad ü" in error["traceback"]
    error = it.error(BROKEN[language])
    assert error["traceback"] and error["value"]
    assert it.check(PRINT[language])["stdout"] == "ü\n"


@pytest.mark.parametrize("language, where, code", [
    ("typescript", "'/tmp'", "process.cwd()"), ("r", '[1] "/tmp"', "getwd()"), ("java", '"/tmp"', 'System.getProperty("user.dir")')])
def test_directory(contexts, language, where, code):
    assert contexts[language].text(code) == where


@pytest.mark.parametrize("language, code, texts", [
    ("typescript", "`${process.env.A} ${process.env.OF_CONTEXT}`", ("'it\\'s ü c'", "'undefined c'")),
    ("r", "paste(Sys.getenv('A', 'none'), Sys.getenv('OF_CONTEXT'))", ('[1] "it\'s ü c"', '[1] "none c"')),
    ("java", 'System.getProperty("A") + " " + System.getProperty("OF_CONTEXT")', ('"it\'s ü c"', '"null c"'))])
def test_variables(contexts, language, code, texts):
    it = contexts[language]
    [result] = it.check(code, env={"A": "it's ü", "B": ""})["results"]
    assert result["text"] in (texts[0], f'"{texts[0][1:-1]}"'.replace("\\'", "'"))
    assert it.text(code) == texts[1]
    [result] = it.check(code, env={"OF_CONTEXT": "over"})["results"]
    assert "over" in result["text"]
    assert it.text(code) == texts[1]


@pytest.mark.parametrize("codes", [SLEEPS, SPINS], ids=["sleeps", "spins"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_interrupt(contexts, daemon, language, codes):
    it = contexts[language]
    it.check(SET[language])
    stream = events(it.box.client, it.path + "/execute", {"code": codes[language]})
    assert [next(stream)[0], next(stream)[0]] == ["start", "stdout"]
    it.with_client(daemon.client()).post("interrupt")
    rest = list(stream)
    assert [kind for kind, _ in rest] == ["error", "end"], rest
    assert rest[0][1]["name"] == "Interrupted" and not rest[1][1]["state_lost"]
    assert it.text(GET[language]) == VALUE[language]


def test_what_is_printed_before_an_interrupt_is_printed_once(contexts, daemon):
    """Java's thread is stopped wherever it is: not between a write and the note that it was done."""
    it = contexts["java"]
    other = it.with_client(daemon.client())
    for _ in range(20):
        stream = events(it.box.client, it.path + "/execute", {"code": SPINS["java"]})
        assert [next(stream)[0], next(stream)[0]] == ["start", "stdout"]
        other.post("interrupt")
        assert [kind for kind, _ in stream] == ["error", "end"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_interrupts_at_any_moment(contexts, daemon, language):
    it = contexts[language]
    other = it.with_client(daemon.client())
    for i in range(6):
        running = paddock.Background(it.execute, SLEEPS[language] if i % 2 else SPINS[language], timeout_ms=30000)
        paddock.until(lambda: other.box.client.get(it.path).json()["busy"], "it runs")
        other.post("interrupt")
        answer = running.result()
        assert answer["error"] and not answer["timed_out"] and not answer["state_lost"], answer
    assert it.check(PRINT[language])["stdout"] == "ü\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_time_limit(contexts, language):
    answer = paddock.given_time(lambda limit: contexts[language].execute(SPINS[language], timeout_ms=limit), lambda answer: answer["stdout"], 700)
    assert answer["timed_out"] and not answer["state_lost"] and answer["error"] and answer["stdout"] == "go\n"


@pytest.mark.parametrize("language, code", [
    ("typescript", "process.kill(process.pid, 'SIGKILL')"), ("r", "quit('no', 7)"), ("java", "Runtime.getRuntime().halt(7);")])
def test_death_and_restart(contexts, language, code):
    it = contexts[language]
    answer = it.execute(code)
    assert answer["error"]["name"] == "InterpreterDied" and answer["state_lost"]
    assert it.check(SET[language])["execution_count"] == 1
    assert it.post("restart")["id"] == it.id
    assert it.error("x" if language != "java" else "x + 1")["name"]


# ---- of one language -------------------------------------------------------


def test_typescript(contexts):
    ts = contexts["typescript"]
    ts.check("interface P { name: string; age?: number }\ntype Q = P & { z: string }\nenum Color { Red, Green = 'g' }\n"
             "class Box<T> { constructor(private v: T) {} get(): T { return this.v } }")
    assert ts.text("const p: P = { name: 'Ann' }; `${p.name} ${Color.Green} ${new Box<number>(7).get()}`") == "'Ann g 7'"
    ts.check("import { sep } from 'path'\nexport const kept: string = 'k'")
    assert ts.text("sep + kept") == "'/k'", "what only a later cell uses is there"
    assert ts.text("const f = async <T,>(x: T): Promise<T> => x\nawait f(5)") == "5"
    error = ts.error("let ok = 1\nlet bad: = 2")
    assert error["name"] == "SyntaxError" and ":2:10" in error["traceback"] and "let bad: = 2" in error["traceback"]


def test_objects_are_not_blocks(place):  # noqa: F811
    for language in ("javascript", "typescript"):
        it = make(place, language)
        assert it.text("{ a: 1, b: 'x' }") == "{ a: 1, b: 'x' }"
        assert it.text("{ let q = 1; q + 1 }") == "2"


def test_r_results(contexts):
    r = contexts["r"]
    assert [x["text"] for x in r.check("1 + 1\ninvisible(3)\n'two'")["results"]] == ["[1] 2", '[1] "two"']
    [frame] = r.check("data.frame(a = 1:2, b = c('x', NA), c = factor(c('u', 'v')))")["results"]
    assert frame["data"] == {"a": [1, 2], "b": ["x", None], "c": ["u", "v"]}
    error = r.error("f <- function(n) stop('no ', n)\ng <- function() f(3)\ng()")
    assert error["value"] == "no 3" and "1. g()" in error["traceback"] and "2. f(3)" in error["traceback"]
    assert "careful" in r.check("warning('careful')")["stderr"]


def test_r_plots(contexts):
    results = contexts["r"].check("plot(1:3)\nhist(c(1, 2, 2))")["results"]
    images = [base64.b64decode(x["png"]) for x in results if "png" in x]
    assert len(images) == 2 and all(image.startswith(b"\x89PNG\r\n") for image in images)


def test_java_declarations(contexts):
    java = contexts["java"]
    java.check("record Pair(int a, int b) {}\nint twice(int n) { return 2 * n; }")
    assert java.text("new Pair(1, twice(2))") == "Pair[a=1, b=4]"
    assert java.text("List.of(3, 1, 2).stream().sorted().collect(Collectors.toList())") == "[1, 2, 3]"
    assert java.text("int n = 6;\nn * 7") == "42"
    assert java.check("int m = 6;")["results"] == [] and java.check("// nothing")["results"] == []
    error = java.error("int k = 1;\nint wrong = \"text\";")
    assert error["name"] == "CompilationException" and "int wrong" in error["traceback"]
    error = java.error("int f(int n) { return 1 / n; }\nf(0)")
    assert error["name"] == "ArithmeticException" and "f(#" in error["traceback"]


def test_default_contexts_and_a_restart_of_the_api(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    box = client.create()
    for language in LANGUAGES:
        assert execute(box, SET[language], language=language)["error"] is None
    daemon.kill_api()
    client.close()
    for language in LANGUAGES:
        assert Context(box, {"id": language}).text(GET[language]) == VALUE[language]


# ---- where the image has none ----------------------------------------------

WITHOUT = {"r": ("R", "r-base-core"), "java": ("java", "default-jdk-headless")}


@pytest.mark.parametrize("language", WITHOUT)
def test_a_language_that_is_not_installed(make_box, language):
    program, package = WITHOUT[language]
    box = make_box()
    box.check(f"rm -f $(command -v {program})", user="root")
    response = box.client.post(box.path + "/contexts", {"language": language})
    assert response.status == 501 and program in response.json()["error"]["message"] and package in response.json()["error"]["message"]
    response = box.client.post(box.path + "/execute", {"language": language, "code": "1"})
    assert response.status == 501
    assert box.client.get(box.path + "/contexts").json()["contexts"] == []


def test_typescript_without_a_compiler(make_box):
    box = make_box()
    box.check("rm -rf /usr/share/nodejs/typescript /usr/lib/node_modules/typescript /usr/lib/node_modules/esbuild "
              "/usr/local/lib/node_modules; rm -f $(command -v esbuild)", user="root")
    if "function" in box.check("node -p 'typeof require(\"module\").stripTypeScriptTypes'"):
        pytest.skip("this Node needs no compiler")
    response = box.client.post(box.path + "/contexts", {"language": "typescript"})
    assert response.status == 501 and "node-typescript" in response.json()["error"]["message"]
