//go:build lookcount

package http1

import "testing"

const counting = true

// With this tag every test that scans asserts that its work was linear too.

func startLooking() { looked = 0 }

// requireLinear asserts that no more than four times as many bytes were looked at as there are.
func requireLinear(t testing.TB, bytes int) {
	t.Helper()
	if looked > 4*bytes {
		t.Fatalf("%d bytes of input, %d looked at", bytes, looked)
	}
}
