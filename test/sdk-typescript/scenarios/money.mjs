// What an agent asks for, and what people say: against a daemon of its own with wallets and chains (test/it/money_kit.py).

function world({ sdk, onAnswer, until }) {
  const { others, ...where } = JSON.parse(process.env.MONEY);
  const paddock = new sdk.Paddock({ ...where, onAnswer });
  return {
    paddock,
    // The agent, and people with wallets elsewhere: they are no part of the SDK.
    async other(what, args) {
      const answer = await fetch(`${others}/${what}`, { method: 'POST', body: JSON.stringify(args) });
      if (answer.status !== 200) throw new Error(`${what}: ${await answer.text()}`);
      return await answer.json();
    },
    inState: (id, ...states) => until(`${id} is ${states}`, async () => {
      const now = await paddock.transactions.get(id);
      return states.includes(now.state) ? now : undefined;
    }),
  };
}

export default [
  ['people decide on what an agent asks for', async (given, assert) => {
    const { paddock, other, inState } = world(given);
    const asked = await other('ask', {});
    const tx = await paddock.transactions.get(asked.id);
    assert.deepEqual([tx.state, tx.value, tx.to, tx.agent_name], ['pending', asked.value, asked.to, 'spender']);
    const listed = [];
    for await (const one of paddock.transactions.list({ state: 'pending', agent: 'spender' })) listed.push(one.id);
    assert(listed.includes(tx.id));
    assert.equal((await paddock.transactions.reject(tx.id, { note: 'not today' })).state, 'rejected');
    await assert.rejects(paddock.transactions.approve(tx.id, tx.digest), { code: 'wrong_state' });
    const withdrawn = await paddock.transactions.cancel((await other('ask', {})).id, { note: 'not needed' });
    assert.equal(withdrawn.state, 'cancelled');
    const spending = await paddock.wallets.spending(asked.wallet);
    assert.equal(spending.scope, `wallet:${asked.wallet}`);
    assert((await paddock.signer.chains()).every((chain) => chain.status === 'ok' || chain.status === 'unknown'));
    assert((await paddock.wallets.list()).some((wallet) => wallet.id === asked.wallet));
    await inState(tx.id, 'rejected');
  }],
  ['what was sent is sent again with higher fees, then replaced', async (given, assert) => {
    const { paddock, other, inState } = world(given);
    const tx = await paddock.transactions.get((await other('ask', {})).id);
    assert.notEqual((await paddock.transactions.approve(tx.id, tx.digest)).state, 'pending');
    const first = (await inState(tx.id, 'broadcast')).hash;
    assert.equal((await paddock.transactions.speedUp(tx.id)).id, tx.id);
    const second = (await inState(tx.id, 'broadcast')).hash;
    assert.notEqual(second, first);
    assert.equal((await paddock.transactions.cancel(tx.id)).id, tx.id);
    await assert.rejects(paddock.transactions.revoke(tx.id), { code: 'wrong_state' });
    const { attempts } = (await paddock.transactions.get(tx.id)).card;
    assert.deepEqual(attempts.slice(1).map((one) => one.hash), [second, first]);
  }],
  ['an allowance is taken back by a request of its own', async (given, assert) => {
    const { paddock, other, inState } = world(given);
    const tx = await paddock.transactions.get((await other('ask', { allows: true })).id);
    await paddock.transactions.approve(tx.id, tx.digest);
    await inState(tx.id, 'broadcast');
    const taken = await paddock.transactions.revoke(tx.id);
    assert.deepEqual([taken.state, taken.reason, taken.to], ['pending', `revoke ${tx.id}`, tx.to]);
    assert.equal((await paddock.transactions.revoke(tx.id, { note: 'again' })).id, taken.id);
  }],
  ['a wallet in a page answers', async (given, assert) => {
    const { paddock, other, inState } = world(given);
    for (const sends of [true, false]) {
      const asked = await other('ask', { elsewhere: true });
      await paddock.transactions.approve(asked.id, (await paddock.transactions.get(asked.id)).digest);
      await inState(asked.id, 'awaiting_wallet');
      const said = sends ? await other('send', { value: asked.value, to: asked.to }) : { rejected: true };
      assert.equal((await paddock.transactions.answer(asked.id, said)).id, asked.id);
      const done = await inState(asked.id, ...(sends ? ['confirmed', 'final'] : ['wallet_rejected']));
      assert.equal(done.hash, said.hash ?? null);
    }
  }],
  ['a wallet on a phone is connected and sent away', async (given, assert) => {
    const { paddock, other } = world(given);
    const pairing = await paddock.wallets.connect({ label: 'phone' });
    assert(pairing.uri.startsWith('wc:'));
    await other('pair', { uri: pairing.uri });
    const session = async () => (await paddock.wallets.sessions()).find((one) => one.id === pairing.id);
    assert.equal((await given.until('the session is listed', session)).name, 'Test Wallet');
    await paddock.wallets.disconnect(pairing.id);
    assert.equal(await session(), undefined);
  }],
];
