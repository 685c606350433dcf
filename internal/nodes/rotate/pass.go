package rotate

import (
	"slices"
	"strings"
)

// Trust is what a node's machine configuration says about a certificate authority: certificates in PEM.
type Trust struct {
	Issuing  string   // machine.ca or cluster.ca
	Accepted []string // machine.acceptedCAs or cluster.acceptedCAs; the issuing one is accepted, too
}

// All returns all certificates that are accepted, each once.
func (t Trust) All() []string {
	var all []string
	for _, one := range append([]string{t.Issuing}, t.Accepted...) {
		if !has(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// Equal reports whether two lists have the same certificates, in any order.
func Equal(a, b []string) bool { return len(without(a, b...)) == 0 && len(without(b, a...)) == 0 }

// Pass is one of the three changes that each node gets. A pass begins when all nodes have the former one, so that at every time each node
// accepts the certificates of all others, and one client certificate is accepted by all.
type Pass int

// Passes, in their order.
const (
	Accept Pass = iota // the declared authority is accepted
	Issue              // the declared authority issues, and the former ones are accepted
	Drop               // the former ones are not accepted any more
)

// String says what the pass does.
func (p Pass) String() string {
	return [...]string{"the new CA is accepted", "the new CA issues", "the former CA is not accepted any more"}[p]
}

// Next returns what a node is to trust after the pass, and whether that is a change. The authorities are all generations, oldest first. A
// node that is further already stays as it is. Authorities that are not among them stay accepted.
func (p Pass) Next(now Trust, authorities []string) (Trust, bool) {
	declared := authorities[len(authorities)-1]
	next := Trust{Issuing: now.Issuing, Accepted: slices.Clone(now.Accepted)}
	switch p {
	case Accept:
		if !same(now.Issuing, declared) && !has(now.Accepted, declared) {
			next.Accepted = append(next.Accepted, declared)
			return next, true
		}
	case Issue:
		if !same(now.Issuing, declared) {
			next.Accepted = without(next.Accepted, declared)
			if !has(next.Accepted, now.Issuing) {
				next.Accepted = append(next.Accepted, now.Issuing)
			}
			next.Issuing = declared
			return next, true
		}
	case Drop:
		next.Accepted = without(next.Accepted, authorities...)
		if len(next.Accepted) < len(now.Accepted) && same(now.Issuing, declared) {
			return next, true
		}
	}
	return now, false
}

// Issues reports whether the declared authority issues, the last one.
func (t Trust) Issues(authorities []string) bool {
	return same(t.Issuing, authorities[len(authorities)-1])
}

func same(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }

func has(list []string, one string) bool {
	return slices.ContainsFunc(list, func(other string) bool { return same(one, other) })
}

func without(list []string, unwanted ...string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(one string) bool { return has(unwanted, one) })
}
