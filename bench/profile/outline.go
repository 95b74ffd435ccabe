package profile

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode"

	"github.com/google/pprof/profile"
)

// Outline is a profile with only so much detail as a document has room for: what
// the program does, and of the kernel which system call it is in, and whether
// that is the receiver's side or the waking of a thread.
type Outline struct {
	About string // what was recorded, in a line
	// Time is that of each stack, in nanoseconds or events: "main.(*loop).run;netpoll.Send;[kernel] sendto".
	Time map[string]int64
}

// inKernel marks a frame of an outline that is the kernel's.
const inKernel = "[kernel] "

// ReadOutline reads a profile that `ladder flame` has written. One without any
// sample is an error.
func ReadOutline(path string) (*Outline, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := parseProfile(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return outlineOf(p)
}

func outlineOf(p *profile.Profile) (*Outline, error) {
	o := &Outline{About: strings.Join(p.Comments, "; "), Time: map[string]int64{}}
	for _, s := range p.Sample {
		if len(s.Value) < 2 || s.Value[1] <= 0 || len(s.Location) == 0 {
			continue
		}
		if stack := outlined(frames(s)); len(stack) > 0 {
			o.Time[strings.Join(stack, ";")] += s.Value[1]
		}
	}
	if len(o.Time) == 0 {
		return nil, errNoSamples
	}
	return o, nil
}

// outlined leaves out of a stack, which is leaf first, what says nothing to a
// reader, and turns it around: how a loop's goroutine was started, the layers
// between a wrapper and the kernel, what Go's runtime calls within itself, and
// the kernel's own layers. Of the admin listener nothing is left.
func outlined(stack []frame) (out []string) {
	if isAdmin(stack) {
		return nil
	}
	before := projectCode
	for _, f := range slices.Backward(stack) {
		switch {
		case f.kind == kernelCode, isPlumbing(f.name), f.kind == runtimeCode && before == runtimeCode:
		default:
			out = append(out, f.name)
			before = f.kind
		}
	}
	if stack[0].kind != kernelCode {
		return out
	}
	call := callOf(stack)
	if call == "" || call == anyCall {
		call = "page faults, interrupts and others"
		if slices.ContainsFunc(stack, func(f frame) bool { return f.name == kernelPrefix+anyCall || strings.HasPrefix(f.name, "do_syscall") }) {
			call = "other system calls"
		}
	}
	out = append(out, inKernel+call)
	for _, part := range kernelParts {
		if slices.ContainsFunc(stack, func(f frame) bool {
			c, ok := kernelFunction(f.name)
			return f.kind == kernelCode && ok && c == part.of
		}) {
			out = append(out, inKernel+part.name)
		}
	}
	return out
}

// kernelParts are the two things inside a system call that an outline tells of.
var kernelParts = []struct {
	of   category
	name string
}{
	{kernelSoftirq, "softirq: the receiver's side"},
	{kernelWake, "waking a thread"},
}

// isPlumbing tells whether a function only leads to another one: it starts a
// loop's goroutine, or is a layer below one of the wrappers of shared/netpoll.
func isPlumbing(name string) bool {
	for _, prefix := range []string{"sync.(*WaitGroup).Go", "main.(*server).Start.", "syscall.RawSyscall", "syscall.Syscall", "golang.org/x/sys/unix.RawSyscall", "golang.org/x/sys/unix.Syscall"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	if strings.HasSuffix(name, ".Syscall6") {
		return true
	}
	_, wrapper := wrapperCalls[name]
	return wrapper && unicode.IsLower(rune(name[strings.LastIndexByte(name, '.')+1]))
}
