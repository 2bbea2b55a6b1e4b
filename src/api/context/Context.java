/*
 * The Java of a code context: one JShell that lives as long as its process. paddock-api sends this text and then
 * requests over descriptor 250: a line "ID BYTES ENV_BYTES", variables as NAME=VALUE with a NUL after each, then
 * the code. Events go to descriptor 251, a JSON object on each line, the first of them {id: 0, type: "ready"}; from
 * "begin" on SIGINT interrupts the code. Descriptors 1 and 2 are the code's own.
 *
 * The environment of a process in Java cannot be changed: variables are system properties (System.getProperty).
 */
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import jdk.jshell.Diag;
import jdk.jshell.EvalException;
import jdk.jshell.JShell;
import jdk.jshell.JShellException;
import jdk.jshell.Snippet;
import jdk.jshell.SnippetEvent;
import jdk.jshell.SourceCodeAnalysis;
import jdk.jshell.UnresolvedReferenceException;

public class Context {
	static final int TEXT_MAX = 1 << 20;
	static final String[] IMPORTS = { "java.io.*", "java.math.*", "java.net.*", "java.nio.file.*", "java.util.*",
		"java.util.concurrent.*", "java.util.function.*", "java.util.prefs.*", "java.util.regex.*", "java.util.stream.*" };

	static InputStream requests;
	static FileOutputStream events;
	static JShell shell;
	static String id = "0";
	static volatile boolean running, interrupted;

	// ---- events ----

	static String quoted(String text) {
		StringBuilder b = new StringBuilder("\"");
		for (int i = 0; i < text.length(); i++) {
			char c = text.charAt(i);
			boolean pair = Character.isHighSurrogate(c) && i + 1 < text.length() && Character.isLowSurrogate(text.charAt(i + 1));
			if (c == '"' || c == '\\')
				b.append('\\').append(c);
			else if (pair)
				b.append(c).append(text.charAt(++i));
			else if (c == 0 || Character.isSurrogate(c))
				b.append('\ufffd');
			else if (c < ' ')
				b.append(String.format("\\u%04x", (int) c));
			else
				b.append(c);
		}
		return b.append('"').toString();
	}

	/** Names, each with its value as JSON. */
	static void emit(String type, String... fields) throws Exception {
		StringBuilder b = new StringBuilder("{\"id\":" + id + ",\"type\":\"" + type + "\"");
		for (int i = 0; i < fields.length; i += 2)
			b.append(",\"").append(fields[i]).append("\":").append(fields[i + 1]);
		System.out.flush();
		System.err.flush();
		events.write(b.append("}\n").toString().getBytes(StandardCharsets.UTF_8));
	}

	static void fail(String name, String value, String traceback) throws Exception {
		emit("error", "name", quoted(name), "value", quoted(value), "traceback", quoted(traceback));
	}

	// ---- running ----

	/** False where the code ends with it. */
	static boolean told(SnippetEvent e, boolean last) throws Exception {
		if (interrupted) {
			fail("Interrupted", "the code was interrupted", "Interrupted");
			return false;
		}
		if (e.status() == Snippet.Status.REJECTED) {
			reject(e.snippet());
			return false;
		}
		if (e.exception() != null) {
			thrown(e.exception());
			return false;
		}
		boolean shown = e.snippet().kind() == Snippet.Kind.EXPRESSION
			|| e.snippet().subKind() == Snippet.SubKind.TEMP_VAR_EXPRESSION_SUBKIND;
		if (last && shown && e.value() != null && !e.value().isEmpty()) {
			boolean cut = e.value().length() > TEXT_MAX;
			emit("result", "main", "true", "truncated", String.valueOf(cut), "text",
				quoted(cut ? e.value().substring(0, TEXT_MAX) : e.value()));
		}
		return true;
	}

	static void reject(Snippet snippet) throws Exception {
		String first = null;
		StringBuilder all = new StringBuilder();
		for (Diag d : (Iterable<Diag>) shell.diagnostics(snippet)::iterator) {
			if (!d.isError())
				continue;
			String message = d.getMessage(null);
			first = first == null ? message : first;
			String source = snippet.source();
			int at = (int) Math.max(0, Math.min(d.getPosition(), source.length()));
			int begin = source.lastIndexOf('\n', at - 1) + 1, end = source.indexOf('\n', at);
			all.append("error: ").append(message).append("\n").append(source, begin, end < 0 ? source.length() : end)
				.append("\n").append(" ".repeat(at - begin)).append("^\n");
		}
		fail("CompilationException", first == null ? "the code is not Java" : first, all.toString());
	}

	static void thrown(JShellException e) throws Exception {
		String name = e.getClass().getSimpleName();
		String message = e.getMessage() == null ? "" : e.getMessage();
		if (e instanceof EvalException) {
			String full = ((EvalException) e).getExceptionClassName();
			name = full.substring(full.lastIndexOf('.') + 1);
		} else if (e instanceof UnresolvedReferenceException) {
			message = ((UnresolvedReferenceException) e).getSnippet().name() + " uses something that is not declared";
		}
		StringBuilder trace = new StringBuilder(message.isEmpty() ? name : name + ": " + message);
		for (StackTraceElement frame : e.getStackTrace())
			trace.append("\n    at ").append(frame);
		fail(name, message, trace.toString());
	}

	static List<String> pieces(String code) throws Exception {
		List<String> found = new ArrayList<>();
		SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
		while (!code.isBlank()) {
			SourceCodeAnalysis.CompletionInfo info = analysis.analyzeCompletion(code);
			boolean whole = info.source() != null && info.completeness() != SourceCodeAnalysis.Completeness.DEFINITELY_INCOMPLETE;
			if (info.completeness() == SourceCodeAnalysis.Completeness.EMPTY)
				break;
			found.add(whole ? info.source() : code);  // what is no Java says so when it is evaluated
			code = whole ? info.remaining() : "";
		}
		return found;
	}

	static void execute(String code) throws Exception {
		List<String> pieces = pieces(code);
		for (int i = 0; i < pieces.size() && !interrupted; i++)
			for (SnippetEvent e : shell.eval(pieces.get(i))) {
				if (e.causeSnippet() != null)  // an older one that this one changes
					continue;
				if (!told(e, i == pieces.size() - 1))
					return;
			}
		if (interrupted)
			fail("Interrupted", "the code was interrupted", "Interrupted");
	}

	static void run(String code, Map<String, String> variables) throws Exception {
		Map<String, String> before = new LinkedHashMap<>();
		for (Map.Entry<String, String> v : variables.entrySet())
			before.put(v.getKey(), System.setProperty(v.getKey(), v.getValue()));
		interrupted = false;
		running = true;
		emit("begin");
		try {
			execute(code);
		} catch (IllegalStateException e) {
			fail("InterpreterDied", String.valueOf(e.getMessage()), "");
		} finally {
			running = false;
		}
		for (Map.Entry<String, String> v : before.entrySet())
			if (v.getValue() == null)
				System.clearProperty(v.getKey());
			else
				System.setProperty(v.getKey(), v.getValue());
	}

	/** While nobody prints: a thread that is stopped between a write and the note that it was done would do it again. */
	static void stopQuietly() {
		synchronized (System.out) {
			synchronized (System.err) {
				if (running && interrupted)
					shell.stop();
			}
		}
	}

	/** Again and again: code that is being compiled cannot be stopped yet. One whose output nobody takes prints for ever. */
	static void stop() {
		while (running && interrupted) {
			Thread quiet = new Thread(Context::stopQuietly);
			quiet.start();
			try {
				quiet.join(500);
				if (quiet.isAlive())
					shell.stop();
				Thread.sleep(50);
			} catch (InterruptedException e) {
				return;
			}
		}
	}

	// ---- requests ----

	static String line() throws Exception {
		ByteArrayOutputStream b = new ByteArrayOutputStream();
		for (int c; (c = requests.read()) != '\n'; b.write(c))
			if (c < 0)
				Runtime.getRuntime().halt(0);
		return b.toString(StandardCharsets.UTF_8);
	}

	static byte[] bytes(int n) throws Exception {
		byte[] b = requests.readNBytes(n);
		if (b.length < n)
			Runtime.getRuntime().halt(0);
		return b;
	}

	static Map<String, String> pairs(byte[] b) {
		Map<String, String> found = new LinkedHashMap<>();
		String all = new String(b, StandardCharsets.UTF_8);
		for (String pair : all.isEmpty() ? new String[0] : all.split("\0"))
			found.put(pair.substring(0, pair.indexOf('=')), pair.substring(pair.indexOf('=') + 1));
		return found;
	}

	public static void main(String[] arguments) throws Exception {
		requests = new BufferedInputStream(new FileInputStream("/proc/self/fd/250"));
		events = new FileOutputStream("/proc/self/fd/251");
		System.getenv().forEach((name, value) -> {
			if (System.getProperty(name) == null)
				System.setProperty(name, value);
		});
		shell = JShell.builder().executionEngine("local").out(System.out).err(System.err).build();
		for (String name : IMPORTS)
			shell.eval("import " + name + ";");
		sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> {
			interrupted = running;
			new Thread(Context::stop).start();
		});
		emit("ready");
		for (int count = 1;; count++) {
			String[] head = line().split(" ");
			Map<String, String> variables = pairs(bytes(Integer.parseInt(head[2])));
			String code = new String(bytes(Integer.parseInt(head[1])), StandardCharsets.UTF_8);
			id = head[0];
			run(code, variables);
			emit("end", "count", String.valueOf(count));
		}
	}
}
