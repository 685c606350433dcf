package probe

import "errors"

// Target is the part that the specs of runs over a Kubernetes API have in common: which cluster to change, and for how long.
type Target struct {
	Cluster    string   `json:"cluster"`           // name, for the report; required
	Kubeconfig string   `json:"kubeconfig"`        // cluster-admin kubeconfig, YAML; secret; required
	Timeout    Duration `json:"timeout,omitempty"` // longest wait for the whole run; 0 means the subcommand's default
}

// Validate returns every problem of the target. Its errors hold nothing of the kubeconfig.
func (t *Target) Validate() error {
	return errors.Join(
		Required("cluster", t.Cluster, "give the cluster's name"),
		Required("kubeconfig", t.Kubeconfig, "give the content of a kubeconfig"),
		NotNegative("timeout", t.Timeout))
}
