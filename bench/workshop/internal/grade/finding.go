package grade

import "fmt"

// Finding is one thing that holds, or does not yet.
type Finding struct {
	Check string // the name of the check that found it, as in exercise.yaml
	Holds bool
	Text  string // in plain words, one line
	Look  string // where to look if it does not hold; may be empty
}

// Check is one line of an exercise's checks: a figure with a limit, or a behaviour by its name.
type Check struct {
	// Step is the title of the step that begins with this check; "" if it belongs to the one before.
	Step string `yaml:"step,omitempty"`
	// Figure is what is counted, per request unless Per says otherwise; Of is the workload.
	Figure string `yaml:"figure,omitempty"`
	Of     string `yaml:"of,omitempty"`
	// AtMost and AtLeast are the limits; one of them is set.
	AtMost  *float64 `yaml:"at_most,omitempty"`
	AtLeast *float64 `yaml:"at_least,omitempty"`
	// Behaviour is the name of a behaviour, if this is not a figure.
	Behaviour string `yaml:"behaviour,omitempty"`
	// Look says where to look when the check fails.
	Look string `yaml:"look,omitempty"`
}

// Name is how the check is called in a list.
func (c Check) Name() string {
	if c.Behaviour != "" {
		return c.Behaviour
	}
	if c.Of == "" {
		return c.Figure
	}
	return c.Figure + " of " + c.Of
}

// label is how a figure stands in a result.
func (c Check) label() string {
	if s, ok := special[c.Figure]; ok {
		return c.Figure + " per " + s.per
	}
	return c.Figure + " per request (" + c.Of + ")"
}

// judge compares a figure with its limit.
func (c Check) judge(value float64) Finding {
	f := Finding{Check: c.Name(), Holds: true, Look: c.Look}
	switch {
	case c.AtMost != nil && value > *c.AtMost:
		f.Holds = false
		f.Text = fmt.Sprintf("%s: %s, must be at most %s", c.label(), number(value), number(*c.AtMost))
	case c.AtLeast != nil && value < *c.AtLeast:
		f.Holds = false
		f.Text = fmt.Sprintf("%s: %s, must be at least %s", c.label(), number(value), number(*c.AtLeast))
	default:
		f.Text = fmt.Sprintf("%s: %s", c.label(), number(value))
	}
	return f
}

func number(v float64) string {
	if v >= 100 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.2f", v)
}
