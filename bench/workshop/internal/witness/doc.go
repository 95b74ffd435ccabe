// Package witness runs a program and watches its system calls from outside, with ptrace(2): what a
// program says of itself can be made up, what the kernel was asked for cannot. It needs no tool and no
// rights beyond those of a debugger.
//
// It reports what it saw. What that means for a learner is package grade's to say.
package witness
