package cluster

import "maps"

// metricsServerPath is the key of metrics-server and of the kubelets' signed certificates.
const metricsServerPath = "kubernetes.metricsServer"

// CertificateApprover is the Deployment of the tree that approves the certificates for which kubelets ask between runs.
const CertificateApprover = "kubelet-serving-cert-approver"

// ServingFlag is the kubelet's flag to ask the cluster's CA for the certificate of its API, in place of one that it signs itself.
const ServingFlag = "rotate-server-certificates"

// KubeletArgs returns the flags of every kubelet: those of the stack file, and those that follow from another key.
func (c *Cluster) KubeletArgs() map[string]string {
	if !c.Kubernetes.MetricsServer {
		return c.Talos.Kubelet.ExtraArgs
	}
	args := map[string]string{ServingFlag: "true"}
	maps.Copy(args, c.Talos.Kubelet.ExtraArgs)
	return args
}

// metricsServer checks that something brings metrics-server and approves certificates, and that the kubelets ask for them.
func (c clusterCheck) metricsServer() {
	if !c.Kubernetes.MetricsServer {
		return
	}
	if !c.GitOps.Enabled {
		c.Found(metricsServerPath, "remove it, or set gitops.enabled: true", "comes with the tree, which nothing applies")
	}
	if !c.CertManager.Enabled {
		c.Found(metricsServerPath, "remove it, or set certManager.enabled: true", "needs a certificate of cert-manager, which is off")
	}
	if value, given := c.Talos.Kubelet.ExtraArgs[ServingFlag]; given && value != "true" {
		c.Found(EntryPath("talos.kubelet.extraArgs", ServingFlag), "remove it", "is %s, and %s needs true", value, metricsServerPath)
	}
}

// metricsServerSettings are the cluster settings of metrics-server.
var metricsServerSettings = []Setting{
	{"METRICS_SERVER", metricsServerPath, "`release` if metrics-server runs, and kubelets have certificates of the cluster's CA; only then",
		only(func(c *Cluster) bool { return c.Kubernetes.MetricsServer }, func(*Cluster) string { return "release" })},
}
