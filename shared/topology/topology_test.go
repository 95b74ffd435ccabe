package topology

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The machines of exercise 25 are asked in bench/workshop, of this text too; here is one of them.
func TestPlace(t *testing.T) {
	files := map[string]string{
		"devices/system/cpu/online":         "0-15\n",
		"devices/system/node/online":        "0,2\n",
		"devices/system/node/has_memory":    "0,2\n",
		"devices/system/node/node0/cpulist": "0-7\n",
		"devices/system/node/node2/cpulist": "8-15\n",
	}
	read := func(name string) string { return files[name] }
	allowed := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}
	require.Equal(t, []int{0, 1, 2, 3, 8, 9, 10, 11}, Place(allowed, 8, read))
	require.Equal(t, allowed, Place(allowed, 40, read))
	require.Equal(t, []int{5, 6}, Place([]int{5, 6, 7}, 2, read))
	require.Equal(t, []int{30}, Place([]int{30, 31}, 1, read), "what is allowed may be used, whatever /sys says")
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string][]int{"0-3,8\n": {0, 1, 2, 3, 8}, "5\n": {5}, "2,0-1": {0, 1, 2}, "\n": nil} {
		list, ok := numbers(text)
		require.True(t, ok, "%q", text)
		require.Equal(t, want, list, "%q", text)
	}
	for _, text := range []string{"", "a\n", "0-\n", "-1\n", "3-1\n", "0-8192\n", "1,,2\n", "0-99999999999999999999\n"} {
		_, ok := numbers(text)
		require.False(t, ok, "%q", text)
	}
}

// The text of this package is the reference of exercise 25: what -pin does and what the exercise
// teaches is one thing.
func TestIsTheReference(t *testing.T) {
	reference, err := os.ReadFile(filepath.FromSlash("../../docs/workshop/exercises/25-near-its-memory/_reference/placement.go"))
	require.NoError(t, err)
	own, err := os.ReadFile("topology.go")
	require.NoError(t, err)
	_, text, ok := strings.Cut(string(own), "package topology\n")
	require.True(t, ok)
	require.Equal(t, string(reference), "package main\n"+text)
}
