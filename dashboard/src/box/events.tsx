import type { Event } from "../api";
import { EventTable } from "../eventlist";
import type { TabProps } from "../pages/box";
import { recent, useLoad } from "../store";
import { Card, Empty, Shown } from "../ui";

export default function BoxEvents({ box }: TabProps) {
  const past = useLoad<{ events: Event[] }>(`/v1/events?sandbox=${box.id}&limit=1000`);
  const now = recent.use().filter((e) => e.sandbox === box.id);
  return (
    <Card flush>
      <Shown of={past}>
        {(d) => {
          const all = [...now, ...d.events.toReversed().filter((e) => !now.some((n) => n.id === e.id))];
          return all.length ? <EventTable events={all} withBox={false} /> : <Empty icon="list" title="No events">Events are kept for seven days.</Empty>;
        }}
      </Shown>
    </Card>
  );
}
