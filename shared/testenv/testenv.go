// Package testenv says what a test may count on where it runs. Only tests import it.
//
// What starts or drives a server is package harness's, what a right answer is package suite's.
package testenv

import (
	"os"
	"os/exec"
	"testing"
)

const (
	// browserVariable set to "required" makes a test that needs a browser fail where there is none.
	browserVariable = "QPS_LADDER_BROWSER"
	// slowVariable set to "1" runs the tests that call Slow, and the long form of those that call SlowToo.
	slowVariable = "QPS_LADDER_SLOW"
)

// Browser returns the path of a Chromium, for a test that is slow by its nature, see Slow. Where there is none it
// skips the test, or fails it if QPS_LADDER_BROWSER=required, as in .ci/run.
func Browser(t testing.TB) string {
	t.Helper()
	Slow(t)
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = `no Chromium: install it, as with "apt-get install chromium"`
	if os.Getenv(browserVariable) == "required" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// SlowToo says whether what is slow by its nature runs too, for a test that has a shorter form.
func SlowToo() bool { return os.Getenv(slowVariable) == "1" }

// Slow skips a test that is slow by its nature, unless QPS_LADDER_SLOW=1, as in .ci/run.
func Slow(t interface {
	Helper()
	Skipf(string, ...any)
}) {
	t.Helper()
	if !SlowToo() {
		t.Skipf("slow by nature: runs with %s=1, as in .ci/run", slowVariable)
	}
}
