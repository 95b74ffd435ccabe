package run

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/qps-ladder/qps-ladder/bench/workload"
	"github.com/qps-ladder/qps-ladder/shared/harness"
)

// Out is the folder that reports and binaries go to; it is made when missing.
func Out(root string) (string, error) {
	out := filepath.Join(root, "bench", "out")
	return out, os.MkdirAll(filepath.Join(out, "bin"), 0o755)
}

// BuildStages builds stages of the checkout at root into folder and returns them as servers.
func BuildStages(ctx context.Context, root, folder string, stages []string) ([]Server, error) {
	if err := harness.BuildStages(ctx, root, folder, stages); err != nil {
		return nil, buildError(err)
	}
	servers := make([]Server, len(stages))
	for i, s := range stages {
		servers[i] = Server{Name: s, Path: filepath.Join(folder, s), Admin: true}
	}
	return servers, nil
}

// buildError keeps of what the compiler said the first line.
func buildError(err error) error {
	var failed *harness.BuildError
	if errors.As(err, &failed) {
		return fmt.Errorf("cannot build %s: %s", failed.Name, failed.First())
	}
	return err
}

// BuildVariant builds a variant of a stage into folder, as a server of its name.
func BuildVariant(ctx context.Context, root, folder string, v harness.Variant) (Server, error) {
	source, err := v.Source(ctx, root)
	if err != nil {
		return Server{}, err
	}
	s := Server{Name: v.Name, Args: v.Args, Env: v.Env, Admin: true}
	s.Path, err = source.Build(ctx, folder)
	return s, err
}

// Mix builds a stage with some of its files taken from another, into folder. The stages have the
// same files, so that what one step changed can be put into a stage before or after it.
func Mix(ctx context.Context, root, folder, base, from string, files []string) (Server, error) {
	for _, name := range files {
		switch {
		case filepath.Base(name) != name || !strings.HasSuffix(name, ".go"):
			return Server{}, fmt.Errorf("%q is no file of a stage: write its name alone, such as request.go", name)
		case strings.HasSuffix(name, "_test.go"):
			return Server{}, fmt.Errorf("%s is a test: it is no part of the server", name)
		}
	}
	v := harness.Variant{Name: "mix", Stage: base, Change: harness.Change{From: from, Files: files}, Flags: []string{"-gcflags=-e"}}
	s, err := BuildVariant(ctx, root, folder, v)
	var failed *harness.BuildError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%s with %s of %s does not compile: %s", harness.ShortName(base), strings.Join(files, ", "), harness.ShortName(from), missing(failed))
	}
	return s, err
}

var (
	noMember = regexp.MustCompile(`(\S+) undefined \(type (\S+) has no field or method (\w+)`)
	noName   = regexp.MustCompile(`undefined: (\w+)`)
	twice    = regexp.MustCompile(`(?:method )?(\S+) (?:already declared|redeclared)`)
)

// missing says what a compiler's output is about: which methods and names the
// files want from each other and do not get.
func missing(failed *harness.BuildError) string {
	var lacks, doubles []string
	add := func(list *[]string, what string) {
		if !slices.Contains(*list, what) {
			*list = append(*list, what)
		}
	}
	for line := range strings.Lines(failed.Text) {
		if m := noMember.FindStringSubmatch(line); m != nil {
			add(&lacks, strings.TrimPrefix(m[2], "*")+"."+m[3])
		} else if m := noName.FindStringSubmatch(line); m != nil {
			add(&lacks, m[1])
		} else if m := twice.FindStringSubmatch(line); m != nil {
			add(&doubles, m[1])
		}
	}
	var parts []string
	if len(lacks) > 0 {
		parts = append(parts, "missing "+strings.Join(lacks, ", "))
	}
	if len(doubles) > 0 {
		parts = append(parts, "declared twice: "+strings.Join(doubles, ", "))
	}
	return strings.Join(append(parts, failed.First()), "; ")
}

// BareC is the name of the C loop in tables.
const BareC = "bare-c"

// BuildBareC builds the C loop; ok is false, and no error, without a C compiler.
func BuildBareC(ctx context.Context, root, folder string) (s Server, ok bool, err error) {
	s = Server{Name: BareC, Path: filepath.Join(folder, BareC), Can: fixedAnswer}
	ok, err = compileC(ctx, root, "the C loop", s.Path, "bare.c")
	return s, ok, err
}

// BuildRingC builds the twin of the C loop with io_uring; ok is false, and no error, without a C compiler.
func BuildRingC(ctx context.Context, root, folder string) (s Server, ok bool, err error) {
	s = Server{Name: "uring-c", Path: filepath.Join(folder, "uring-c"), Can: fixedAnswer}
	ok, err = compileC(ctx, root, "the C loop with io_uring", s.Path, "uring.c")
	return s, ok, err
}

// BuildBlocking builds the server with a thread for each connection and the one with eight for all, in C; none, and no error,
// without a C compiler.
func BuildBlocking(ctx context.Context, root, folder string) ([]Server, error) {
	path := filepath.Join(folder, "blocking-c")
	ok, err := compileC(ctx, root, "the server with blocking reads", path, "blocking.c")
	if err != nil || !ok {
		return nil, err
	}
	const pool = 8
	return []Server{
		{Name: "threads-c", Path: path, Can: fixedAnswer},
		// Of more connections than threads the others have no answer, and the generator does not begin before each has had one.
		{Name: "pool-c", Path: path, Args: []string{"-pool", strconv.Itoa(pool)}, Can: func(w workload.Workload) bool { return fixedAnswer(w) && w.Total() <= pool }},
	}, nil
}

// compileC compiles a file of bench/c; ok is false, and no error, without a C compiler.
func compileC(ctx context.Context, root, what, program, file string) (ok bool, err error) {
	for _, compiler := range []string{os.Getenv("CC"), "cc", "gcc", "clang"} {
		if _, err := exec.LookPath(compiler); compiler == "" || err != nil {
			continue
		}
		return true, compile(ctx, root, what, compiler, "-O2", "-pthread", "-o", program, filepath.Join("bench", "c", file))
	}
	return false, nil
}

// compile runs a compiler in a folder.
func compile(ctx context.Context, folder, what, compiler string, args ...string) error {
	out, err := harness.Run(ctx, harness.Command{Path: compiler, Args: args, Dir: folder})
	if err == nil && out.Exit.ExitCode() != 0 {
		failed := &harness.BuildError{Name: what, Text: strings.TrimSpace(cmp.Or(out.Stderr, out.Err().Error()))}
		if first, rest, ok := strings.Cut(failed.Text, "\n"); ok && strings.HasPrefix(first, "#") {
			failed.Text = rest // the go command's heading
		}
		return buildError(failed)
	}
	return err
}

// peers are the folders of bench/peers and what they are called in tables.
var peers = []struct{ folder, name string }{{"nethttp", "net/http"}, {"fasthttp", "fasthttp"}, {"gnet", "gnet"}, {"nbio", "nbio"}}

// BuildPeers builds the servers of bench/peers, a module of its own, into folder.
func BuildPeers(ctx context.Context, root, folder string) ([]Server, error) {
	args := []string{"build", "-o", folder + string(filepath.Separator)}
	var servers []Server
	for _, p := range peers {
		args = append(args, "./"+p.folder)
		servers = append(servers, Server{Name: p.name, Path: filepath.Join(folder, p.folder), Can: noHops})
	}
	return servers, compile(ctx, filepath.Join(root, "bench", "peers"), "the peers", "go", args...)
}

// noHops leaves out the middleware that hops between goroutines: the hop is the
// stages' own, so that the peers have nothing like it to measure; and files, which they do not serve.
func noHops(w workload.Workload) bool { return !strings.HasPrefix(w.Name, "async-") && w.File == "" }

// fixedAnswer tells which workloads a loop can serve that sends the same bytes
// for every read and never closes a connection.
func fixedAnswer(w workload.Workload) bool {
	return !w.Reconnect && w.Pipeline == 1 && bytes.HasPrefix(w.Request, []byte("GET / "))
}

// WithFlag is a server started with a further flag, which stands in its name.
func WithFlag(s Server, flag string) Server {
	s.Name = harness.ShortName(s.Name) + " " + flag
	s.Args = append(s.Args[:len(s.Args):len(s.Args)], flag)
	return s
}
