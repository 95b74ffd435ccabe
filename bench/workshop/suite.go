package workshop

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/qps-ladder/qps-ladder/bench/workshop/internal/grade"
)

// suiteLimit is far more than the common suite takes anywhere.
const suiteLimit = 4 * time.Minute

// suiteFile is the test file that makes a package run the common suite. It is put beside the learner's
// code for the build only, so that there is nothing to change in it.
const suiteFile = `package main

import (
	"testing"

	"github.com/qps-ladder/qps-ladder/shared/serve"
	"github.com/qps-ladder/qps-ladder/shared/suite"
)

func TestMain(m *testing.M) { suite.Main(m, serve.StageName(), newServer) }

func TestCommonSuite(t *testing.T) {
	t.Run("conformance", suite.Conformance)
	t.Run("behaviour", suite.Behaviour)
}
`

// commonSuite runs the suite that every stage passes against f as the package work/name. It is a program of
// its own, in a folder of that name, so that a variant that is nowhere on the disk can be tested too.
func commonSuite(ctx context.Context, root, temporary, name string, f files) (finding grade.Finding) {
	finding = grade.Finding{Check: "common suite", Look: "shared/suite; its cases are in shared/suite/testdata"}
	ctx, cancel := context.WithTimeout(ctx, suiteLimit)
	defer cancel()
	f = maps.Clone(f)
	f["common_suite_test.go"] = []byte(suiteFile)
	folder := filepath.Join(temporary, "suite", name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		finding.Text = err.Error()
		return finding
	}
	overlay, err := f.writeOverlay(root, folder, name)
	if err != nil {
		finding.Text = err.Error()
		return finding
	}
	program := filepath.Join(folder, "suite.test")
	if err := runGo(ctx, root, "test", "-c", "-buildvcs=false", "-vet=off", "-o", program, "-overlay", overlay, "./"+workPath+"/"+name); err != nil {
		finding.Text = "the common suite does not build against it:\n" + err.Error()
		return finding
	}
	// In a terminal's foreground group no longer: Ctrl-C reaches it through the context.
	// The first failure ends it: each further test might wait for an answer that does not come, for a minute in all.
	running, stop := context.WithCancel(ctx)
	defer stop()
	command := exec.CommandContext(running, program, "-test.v", "-test.failfast", "-test.run=^TestCommonSuite$", "-test.timeout=3m")
	ownGroup(command)
	mark := grade.NewMark()
	command.Env = append(os.Environ(), mark)
	defer grade.EndMarked(mark)
	command.Dir = folder
	output, err := command.StdoutPipe()
	if err != nil {
		finding.Text = err.Error()
		return finding
	}
	if err := command.Start(); err != nil {
		finding.Text = "cannot run the common suite: " + err.Error()
		return finding
	}
	passed, failed, said := readTests(output, stop)
	err = command.Wait()
	switch {
	case ctx.Err() != nil:
		finding.Text = fmt.Sprintf("the common suite did not end within %v", suiteLimit)
	case err == nil && passed > 0:
		finding.Holds = true
		finding.Text = fmt.Sprintf("the common suite: %d tests, as every stage passes them", passed)
	case len(failed) > 0:
		first := strings.TrimPrefix(failed[0], "TestCommonSuite/")
		finding.Text = fmt.Sprintf("the common suite: it ends at a test that fails, which is\n%s\n%s",
			strings.ReplaceAll(first, "_", " "), shorten(said[failed[0]], 5))
	default:
		finding.Text = "the common suite did not run to its end:\n" + shorten(said[""], 6)
	}
	return finding
}

// place is where something stands in a source file: it says nothing to who has not written it.
var place = regexp.MustCompile(`^\S+\.go:\d+:?$`)

// inPlainWords leaves out of a line of a failed test what is not about the server; "" if nothing is left.
func inPlainWords(words []string) string {
	text := strings.Join(words, " ")
	if strings.HasPrefix(text, "Error Trace:") || strings.HasPrefix(text, "Test:") || place.MatchString(text) {
		return ""
	}
	text = strings.TrimPrefix(strings.TrimPrefix(text, "Error: "), "Messages: ")
	if text == "Received unexpected error:" || text == "FAIL" {
		return ""
	}
	return text
}

// lastWords is how long after its first failure a program may say more about it.
const lastWords = time.Second

// readTests reads what a test program prints with -test.v: the leaves that passed and failed, and what each
// said that failed. It calls stop soon after the first failure, which is known long before the program sums up.
func readTests(output io.Reader, stop func()) (passed int, failed []string, said map[string]string) {
	scanner := bufio.NewScanner(output)
	scanner.Buffer(nil, 16<<20)
	said = map[string]string{}
	parents := map[string]bool{}
	outcome := map[string]bool{}
	var order []string
	current := ""
	for scanner.Scan() {
		line := scanner.Text()
		words := strings.Fields(line)
		switch {
		case len(words) >= 3 && words[0] == "===":
			current = words[2]
			for at := strings.LastIndexByte(current, '/'); at > 0; at = strings.LastIndexByte(current[:at], '/') {
				parents[current[:at]] = true
			}
		case len(words) >= 3 && words[0] == "---":
			current = words[2]
			order = append(order, current)
			outcome[current] = words[1] != "FAIL:"
		default:
			if len(failed) == 0 && len(words) > 1 && words[0] == "Error" && words[1] == "Trace:" {
				failed = append(failed, current)
				timer := time.AfterFunc(lastWords, stop)
				defer timer.Stop()
			}
			if line := inPlainWords(words); line != "" {
				said[current] += line + "\n"
			}
		}
	}
	for _, name := range order {
		switch {
		case !outcome[name] && !parents[name] && !slices.Contains(failed, name):
			failed = append(failed, name)
		case outcome[name] && !parents[name]:
			passed++
		}
	}
	return passed, failed, said
}
