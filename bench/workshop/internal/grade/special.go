package grade

// specialFigure needs a way of its own to be counted, and no workload.
type specialFigure struct {
	per   string
	count func(*Subject) (float64, error)
}

var special = map[string]specialFigure{}

// behaviours say what is wrong with a server, in plain words; nil means nothing.
var behaviours = map[string]func(*Subject) error{}

// described says what each behaviour is about, as it stands in the result.
var described = map[string]string{}

// behaviour registers one.
func behaviour(name, description string, f func(*Subject) error) {
	behaviours[name] = f
	described[name] = description
}

// KnownBehaviour says whether a check may name that behaviour.
func KnownBehaviour(name string) bool { return behaviours[name] != nil }

// Run runs one check. The error says why it could not be run to its end, which is the server's fault.
func (s *Subject) Run(c Check) []Finding {
	if c.Behaviour != "" {
		f := Finding{Check: c.Name(), Holds: true, Text: described[c.Behaviour], Look: c.Look}
		if err := behaviours[c.Behaviour](s); err != nil {
			f.Holds = false
			f.Text += ": " + err.Error()
		}
		return []Finding{f}
	}
	findings, err := s.figure(c)
	if err != nil {
		return []Finding{{Check: c.Name(), Text: c.label() + ": " + err.Error(), Look: c.Look}}
	}
	return findings
}
