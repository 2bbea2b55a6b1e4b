/* Colours for source code: enough to read by, for any language, without running anything. */
export interface Piece {
  text: string;
  kind: "" | "comment" | "string" | "number" | "keyword" | "call";
}

const WORDS = new Set(
  "and as assert async await break case catch class const continue def default del do done elif else esac except export extends false False fi final finally fn for from func function global if impl import in int interface is lambda let local match mod module mut new nil None not null or package pass private protected pub public raise return select self static struct super switch then this throw true True try type typeof union unsafe use using var void while with yield SELECT FROM WHERE INSERT UPDATE DELETE CREATE TABLE AND OR NOT NULL".split(" "),
);

const HASH = /\.(py|sh|bash|rb|pl|ya?ml|toml|conf|cfg|ini|r|mk|dockerfile|env|gitignore)$|(^|\/)(Makefile|Dockerfile|\.[a-z]+rc|\.profile)$/i;
const SLASH = /\.(c|h|cc|cpp|hpp|js|mjs|cjs|ts|tsx|jsx|go|rs|java|kt|swift|php|css|scss|json5?)$/i;
const PLAIN = /\.(txt|log|csv|tsv|md)$/i;

export function tokens(text: string, name: string): Piece[] {
  if (PLAIN.test(name) || text.length > 200_000) return [{ text, kind: "" }];
  const comment = SLASH.test(name) ? "\\/\\/[^\\n]*|\\/\\*[\\s\\S]*?(?:\\*\\/|$)" : HASH.test(name) ? "#[^\\n]*" : "#[^\\n]*|\\/\\/[^\\n]*";
  const rule = new RegExp(
    `(${comment})|("""[\\s\\S]*?(?:"""|$)|'''[\\s\\S]*?(?:'''|$)|"(?:\\\\.|[^"\\\\\\n])*"?|'(?:\\\\.|[^'\\\\\\n])*'?|\`(?:\\\\.|[^\`\\\\])*\`?)|(\\b\\d[\\w.]*)|([A-Za-z_$][\\w$]*)(\\s*\\()?`,
    "g",
  );
  const out: Piece[] = [];
  let at = 0;
  const put = (t: string, kind: Piece["kind"]) => t && out.push({ text: t, kind });
  for (let m = rule.exec(text); m; m = rule.exec(text)) {
    put(text.slice(at, m.index), "");
    at = m.index + m[0].length;
    if (m[1] !== undefined) put(m[1], "comment");
    else if (m[2] !== undefined) put(m[2], "string");
    else if (m[3] !== undefined) put(m[3], "number");
    else {
      put(m[4]!, WORDS.has(m[4]!) ? "keyword" : m[5] ? "call" : "");
      put(m[5] ?? "", "");
    }
    if (m[0] === "") rule.lastIndex++;
  }
  put(text.slice(at), "");
  return out;
}
