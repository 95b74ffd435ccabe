package site

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// startServed starts a browser, and a variant of a stage for it.
func startServed(t *testing.T, v harness.Variant, args ...string) (*browser, *harness.Server) {
	if runtime.GOOS != "linux" {
		t.Skip("the servers need Linux")
	}
	b := startBrowser(t)
	source, err := v.Source(t.Context(), root)
	require.NoError(t, err)
	program, err := source.Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	server, err := harness.StartServer(t.Context(), harness.ServerCommand{Command: harness.Command{Path: program, Args: args}})
	require.NoError(t, err)
	t.Cleanup(server.Close)
	return b, server
}

// TestWebSocketInABrowser has a browser's own WebSocket talk to the reference of exercise 23.
func TestWebSocketInABrowser(t *testing.T) {
	const folder = "docs/workshop/exercises/23-websocket/"
	v := harness.Variant{Name: "websocket", Stage: "stage5", Then: []harness.Change{
		{Folder: folder + "_start", Patch: folder + "start.patch"}, {Folder: folder + "_reference", Patch: folder + "reference.patch"},
	}}
	b, server := startServed(t, v, "-max-body=100000")
	b.open("http://" + server.Ready.Address + "/")
	b.eval(`
		globalThis.opened = () => new Promise((resolve, reject) => {
			const s = new WebSocket("ws://" + location.host + "/websocket");
			s.binaryType = "arraybuffer";
			s.onopen = () => resolve(s);
			s.onerror = () => reject(new Error("no WebSocket"));
		});
		globalThis.answers = (s, n) => new Promise((resolve, reject) => {
			const all = [];
			s.onmessage = e => { if (all.push(e.data) === n) resolve(all); };
			s.onclose = e => reject(new Error("closed with " + e.code));
		});
		globalThis.end = s => new Promise(resolve => { s.onclose = e => resolve(e.code + " " + e.wasClean); });
		1`)
	require.Equal(t, "Grüße 🌍|", b.eval(`(async () => {
		const s = globalThis.first = await opened(), a = answers(s, 2);
		s.send("Grüße 🌍"); s.send("");
		return (await a).join("|") + s.extensions + s.protocol;
	})()`))
	require.Equal(t, "true", b.eval(`(async () => {
		const sizes = [1, 125, 126, 9000, 16384, 65535, 65536, 100000], a = answers(first, sizes.length);
		const sent = sizes.map(n => Uint8Array.from({length: n}, (_, i) => i * 7 % 251));
		sent.forEach(m => first.send(m));
		return (await a).every((m, i) => { m = new Uint8Array(m); return m.length === sizes[i] && m.every((x, j) => x === sent[i][j]); });
	})()`))
	require.Equal(t, "true", b.eval(`(async () => {
		const n = 2000, a = answers(first, n);
		for (let i = 0; i < n; i++) first.send("message " + i);
		return (await a).every((m, i) => m === "message " + i);
	})()`))
	require.Equal(t, "4001 true", b.eval(`(() => { const e = end(first); first.close(4001, "enough"); return e; })()`))
	require.Equal(t, "1009 true", b.eval(`(async () => { const s = await opened(), e = end(s); s.send(new Uint8Array(150000)); return e; })()`))
	b.eval(`(async () => { globalThis.last = end(await opened()); })()`)
	stopped := make(chan error, 1)
	go func() { stopped <- server.Stop() }()
	require.Equal(t, "1001 true", b.eval(`last`))
	require.NoError(t, <-stopped)
}
