/* A text area with its own text in colours beneath it. */
import { useMemo, useRef } from "preact/hooks";
import { tokens } from "./highlight";

export function Editor({ value, onInput, name, label, onKeyDown, readOnly, fit }: { value: string; onInput: (v: string) => void; name: string; label: string; onKeyDown?: (e: KeyboardEvent) => void; readOnly?: boolean; fit?: boolean }) {
  const back = useRef<HTMLPreElement>(null);
  const pieces = useMemo(() => tokens(value, name), [value, name]);
  const lines = value.split("\n").length;
  const key = (e: KeyboardEvent) => {
    const t = e.currentTarget as HTMLTextAreaElement;
    if (e.key === "Tab" && !e.shiftKey && !e.ctrlKey && !e.altKey) {
      e.preventDefault();
      t.setRangeText("    ", t.selectionStart, t.selectionEnd, "end");
      onInput(t.value);
    }
    onKeyDown?.(e);
  };
  return (
    <div class="editor" style={fit ? { height: `${Math.min(Math.max(lines, 3), 24) * 19.5 + 20}px` } : {}}>
      <pre ref={back} aria-hidden="true">
        {pieces.map((p, i) => (p.kind ? <span key={i} class={`hl-${p.kind}`}>{p.text}</span> : p.text))}
        {"\n"}
      </pre>
      <textarea
        aria-label={label}
        spellcheck={false}
        autocomplete="off"
        autocapitalize="off"
        wrap="off"
        readOnly={readOnly}
        value={value}
        onInput={(e) => onInput(e.currentTarget.value)}
        onKeyDown={key}
        onScroll={(e) => {
          back.current!.scrollTop = e.currentTarget.scrollTop;
          back.current!.scrollLeft = e.currentTarget.scrollLeft;
        }}
      />
    </div>
  );
}
