/* A chart over time: uPlot, in the colours of the theme. */
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { theme } from "./theme";

export interface Series {
  label: string;
  values: (number | null)[];
  color: string;
  fill?: boolean;
}

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export default function Chart({ at, series, format, height = 160, name, least, span = 300 }: { at: number[]; series: Series[]; format: (n: number) => string; height?: number; name: string; least: number; span?: number }) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>();
  const mode = theme.use();
  const labels = series.map((s) => s.label).join();

  useEffect(() => {
    const host = box.current!;
    const axis = { stroke: css("--text-3"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui", labelFont: "11px system-ui" };
    plot.current = new uPlot(
      {
        width: Math.max(host.clientWidth, 50),
        height,
        legend: { show: false },
        cursor: { points: { size: 6 }, y: false, drag: { x: false, y: false } },
        padding: [8, 18, 0, 0],
        scales: {
          x: { range: (u) => { const last = u.data[0].at(-1) ?? Date.now() / 1000; return [Math.min(last - span, u.data[0][0] ?? last), last]; } }, // the width of time does not jump
          y: { range: (_u, _lo, hi) => [0, Math.max(hi ?? 0, least) * 1.08] },
        },
        axes: [
          { ...axis, space: 60, size: 28, incrs: [60, 120, 300, 600, 1200], values: (_u, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString("en-GB").slice(0, 5)) },
          { ...axis, size: 58, space: 32, values: (_u, ticks) => ticks.map((t) => format(t)) },
        ],
        series: [{}, ...series.map((s) => ({ label: s.label, stroke: css(s.color), width: 1.5, fill: s.fill ? css(s.color) + "22" : undefined, points: { show: false }, spanGaps: true }))],
      },
      [at, ...series.map((s) => s.values)] as uPlot.AlignedData,
      host,
    );
    const watch = new ResizeObserver(() => plot.current?.setSize({ width: Math.max(host.clientWidth, 50), height }));
    watch.observe(host);
    return () => {
      watch.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [mode, labels, height]);

  useEffect(() => plot.current?.setData([at, ...series.map((s) => s.values)] as uPlot.AlignedData), [at, series]);
  const last = series.map((s) => `${s.label} ${format(s.values.findLast((v) => v !== null) ?? 0)}`).join(", ");
  return <div ref={box} class="chart" style={{ height: `${height}px` }} role="img" aria-label={`${name}: ${last}`} data-points={at.length} />;
}
