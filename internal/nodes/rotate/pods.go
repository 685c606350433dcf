package rotate

import (
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// RootCA is the ConfigMap of each namespace with the certificates by which pods trust the API server. They read it when they start.
const RootCA = "kube-root-ca.crt"

// Root is the ConfigMap RootCA of a namespace.
type Root struct {
	Namespace    string
	UID          string   // "" if it does not exist
	Certificates []string // in PEM
	// Kept means that it is immutable, so that kube-controller-manager cannot write the certificate of its own CA alone into it.
	Kept  bool
	Since time.Time // when it was changed for the last time, if it is kept
}

// Workload is what restarts pods.
type Workload struct{ Kind, Namespace, Name string }

func (w Workload) String() string { return fmt.Sprintf("%s %s/%s", w.Kind, w.Namespace, w.Name) }

// Pod is a running pod that trusts the API server by RootCA.
type Pod struct {
	Namespace, Name string
	Created         time.Time
	Restarted       time.Time // Root.Since of the restart that created it, by its annotation; zero without one
	Workload        Workload  // what restarts it; zero if it ends by itself, or if nothing can restart it
	Problem         string    // why nothing can restart it; "" if something can, or if it ends by itself
}

// Stale returns the pods that have read something else than what is kept now, or may have. Times are in whole seconds, and of clocks that
// may be apart, so a pod that was created a little later is among them, unless it was restarted since, by its annotation. Pods of the
// namespaces in leave are not among them.
func Stale(pods []Pod, roots []Root, leave []string) []Pod {
	since := map[string]time.Time{}
	for _, root := range roots {
		if root.Kept && !root.Since.IsZero() {
			since[root.Namespace] = root.Since
		}
	}
	return slices.DeleteFunc(slices.Clone(pods), func(pod Pod) bool {
		kept, known := since[pod.Namespace]
		return slices.Contains(leave, pod.Namespace) || known && (pod.Created.After(kept.Add(clocksApart)) || pod.Restarted.Equal(kept))
	})
}

// CheckPods returns an error that names every pod that nothing can restart.
func CheckPods(pods []Pod) error {
	var problems []error
	for _, pod := range pods {
		if pod.Problem != "" {
			problems = append(problems, fmt.Errorf("%s/%s %s", pod.Namespace, pod.Name, pod.Problem))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("these pods read Kubernetes' CA when they start, and nothing can restart them; remove them, or write their namespaces "+
		"into lifecycle.certificateAuthorities.leaveNamespaces and restart them yourself:\n%w", errors.Join(problems...))
}

// Bundle returns certificates in one text, as RootCA has them.
func Bundle(certificates []string) string {
	var text strings.Builder
	for _, one := range certificates {
		text.WriteString(strings.TrimSpace(one) + "\n")
	}
	return text.String()
}

// Split returns the certificates of a text.
func Split(bundle string) []string {
	var all []string
	for rest := []byte(bundle); ; {
		block, next := pem.Decode(rest)
		if block == nil {
			return all
		}
		all, rest = append(all, string(pem.EncodeToMemory(block))), next
	}
}
