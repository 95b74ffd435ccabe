package site

import (
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// TestAdminPageMoves opens the page of a stage's admin listener while requests come: what it shows of the
// last second is what a request costs, and it breaks no rule of axe.
func TestAdminPageMoves(t *testing.T) {
	b, server := startServed(t, harness.Variant{Stage: "stage5"}, "-workers=2")
	home := "http://" + server.Ready.Admin + "/"
	b.open(home)
	calls := strings.Split(b.eval(`[...document.querySelectorAll("[data-call]")].map(e => e.dataset.call).join()`), ",")
	for _, c := range harness.SystemCalls {
		require.Equal(t, c.Counter != "vectored_writes", slices.Contains(calls, c.Counter), "%s: sendmsg is one of the writes", c.Counter)
	}

	ctx, end := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			request, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server.Ready.Address+"/", nil)
			if answer, err := http.DefaultClient.Do(request); err == nil {
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
		}
		http.DefaultClient.CloseIdleConnections()
	}()
	defer func() { end(); <-ended }()
	// A request of one connection is a read, a write and about a wait; more of them while the client thinks.
	require.Regexp(t, `^[2-9]\.\d\d / [1-9]\S* / 1\.00$`, b.eval(`new Promise(done => {
		const row = name => document.querySelector('[data-counter="' + name + '"]').cells;
		const look = () => {
			const tile = name => document.querySelector('[data-tile="' + name + '"]').textContent;
			if (parseFloat(row("writes")[1].textContent) === 1) done(tile("calls") + " / " + tile("requests") + " / " + row("writes")[1].textContent);
			else setTimeout(look, 50);
		};
		look();
	})`))
	axe, err := os.ReadFile(filepath.Join("testdata", "axe.min.js"))
	require.NoError(t, err)
	for _, c := range []struct {
		width int
		dark  bool
		name  string
	}{{1400, false, "light"}, {1400, true, "dark"}, {390, true, "phone"}} {
		b.size(c.width, 850, c.dark)
		require.Equal(t, "true", b.eval(`document.documentElement.scrollWidth <= innerWidth`), c.name)
		b.eval(string(axe) + "; 0")
		require.Empty(t, b.eval(`axe.run(document, { resultTypes: ["violations"] }).then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html.slice(0, 200)).join("\n")).join("\n"))`), c.name)
		if folder := os.Getenv("SCREENSHOTS"); folder != "" {
			png, err := base64.StdEncoding.DecodeString(b.screenshot(true))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(folder, "admin-"+c.name+".png"), png, 0o644))
		}
	}
	b.eval(`document.querySelector("#hold").click()`)
	require.Equal(t, "Held.", b.eval(`document.querySelector("#state").textContent`))
	b.requireSilence(home)
}
