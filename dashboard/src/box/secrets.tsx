import { boxPath } from "../api";
import { plain } from "../format";
import type { TabProps } from "../pages/box";
import { SecretList } from "../secretlist";
import { Card, Table } from "../ui";

export default function Secrets({ box }: TabProps) {
  return (
    <>
      <SecretList path={`${boxPath(box.id)}/secrets`} title="Secrets of this sandbox" hint="Values are sealed in the vault and are never shown again. The gate adds them to requests, so that the sandbox does not see them." />
      {box.secrets.length > 0 && (
        <Card title="Given to the sandbox" flush>
          <Table name="Given secrets" id={(s) => s.name} rows={box.secrets} columns={[{ head: "Name", mono: true, cell: (s) => plain(s.name) }, { head: "As", mono: true, wide: true, cell: (s) => plain(s.env ? `$${s.env}` : (s.file ?? "–")) }]} />
        </Card>
      )}
    </>
  );
}
