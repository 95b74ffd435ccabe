package serve

import (
	"path"
	"runtime/debug"
	"strings"
)

// StageName is the name of the stage that this program was built from, such as
// "stage0-naive": the last element of its package path. So main.go can be the
// same file at every stage. A program built from a list of files has no package
// path and is called "stage".
func StageName() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || !strings.Contains(info.Path, "/") {
		return "stage"
	}
	return strings.TrimSuffix(path.Base(info.Path), ".test")
}
