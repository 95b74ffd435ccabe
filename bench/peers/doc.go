// Package peers is the root of a module of its own: servers on other Go
// libraries, which the bench measures beside the stages. Each folder holds one.
// They serve the routes that the workloads ask for and take the flags that the
// bench gives (-addr, -workers), and no more.
package peers
