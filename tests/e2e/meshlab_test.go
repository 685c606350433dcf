//go:build e2e || matrix

package e2e

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// meshLab starts a lab of a clone of this checkout whose stacks infra and apps are small. A stack's program reads the stack files of its
// peers in the checkout, so change makes its changes there.
func meshLab(t *testing.T, name string, change func(stack string, s settings)) *lab {
	t.Helper()
	clone := filepath.Join(t.TempDir(), "slipway")
	runGit(t, "clone", "--quiet", filepath.Join("..", ".."), clone)
	for _, stack := range []string{"infra", "apps"} {
		editStackFile(t, filepath.Join(clone, "Pulumi."+stack+".yaml"), func(s settings) {
			for i := range 2 {
				s.pool(i)["nodes"] = s.pool(i)["nodes"].([]any)[:1]
			}
			if change != nil {
				change(stack, s)
			}
		})
	}
	commitAll(t, clone, name)
	return startLabOf(t, clone, name)
}

// meshSeen is the part of a report about a mesh that the tests read.
type meshSeen struct {
	Outcome  string `json:"outcome"`
	Problems []struct {
		Check, Subject, Verdict, Reason string
	} `json:"problems"`
}

// remarks are a report's differences from the declaration, one line each.
func (m meshSeen) remarks() string {
	var lines []string
	for _, p := range m.Problems {
		lines = append(lines, p.Subject+" "+p.Reason)
	}
	return strings.Join(lines, "\n")
}

// meshReport is the report of a stack's last mesh gate.
func (l *lab) meshReport(stack string) (report meshSeen) {
	l.t.Helper()
	text := l.pulumi("stack", "output", "--stack", stack, "meshReport")
	require.NoError(l.t, json.Unmarshal([]byte(text), &report), text)
	require.Equal(l.t, "open", report.Outcome)
	return report
}

// probeMesh runs the mesh's probe by hand for a stack's cluster, as docs/gates.md says. A first argument that
// begins with s/ is a command of sed that changes what is declared.
func (l *lab) probeMesh(stack string, args ...string) (string, error) {
	l.t.Helper()
	const script = `set -e
cd "$0"
file=$SLIPWAY_LAB/mesh-$1.json
(cd "$SLIPWAY_LAB/project" && pulumi stack output meshSpec --stack "$1") >"$file"
kubectl config view --minify --flatten --context="admin@$1" >"$file.kubeconfig"
shift
case "$1" in s/*) sed -i "$1" "$file"; shift ;; esac
exec go run ./cmd/slipway-probe mesh --kubeconfig "$file.kubeconfig" --spec "$file" "$@"`
	return l.try(append([]string{"sh", "-c", script, l.checkout(), stack}, args...)...)
}

// checkout is the folder of the project that the lab runs.
func (l *lab) checkout() string {
	l.t.Helper()
	folder, err := filepath.Abs(cmp.Or(l.project, filepath.Join("..", "..")))
	require.NoError(l.t, err)
	return folder
}

// sees waits until a cluster is connected with a peer, or finds it absent, and tells which.
func (l *lab) sees(stack, peer string) string {
	l.t.Helper()
	out, err := l.probeMesh(stack, "--timeout", "4m")
	require.NoError(l.t, err, "%s", end(out))
	if strings.Contains(out, peer+": is absent") || strings.Contains(out, peer+" is absent") {
		return "absent"
	}
	return "connected"
}
