// Package argocd knows the images of Argo CD's pods, behind which its real programs run. They are built on demand.
//
// Redis is a stand-in that keeps everything in memory. Signatures of commits are not verified: GnuPG is switched off. Dex only becomes
// ready.
package argocd

import (
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/lab/workload"
)

// The last elements of the images' names.
const (
	image      = "argoproj/argocd"
	redisImage = "library/redis"
)

// parts are the names under which Argo CD's only program is one of its parts.
var parts = []string{
	"argocd", "argocd-server", "argocd-repo-server", "argocd-cmp-server", "argocd-application-controller",
	"argocd-applicationset-controller", "argocd-notifications", "argocd-commit-server", "argocd-k8s-auth", "argocd-dex",
}

// chart is the tool with the chart.
const chart = "argo-cd-chart"

// Build is the command that builds all that a lab with Argo CD needs.
const Build = "lab tools argo-cd " + chart + " helm kustomize redis"

// machine are the files and folders of this machine that the containers have, as far as they exist: Argo CD calls git, ssh and a shell, and
// plugins call what their authors find in the image.
var machine = []string{"/bin", "/usr/bin", "/usr/share", "/etc/alternatives", "/etc/passwd", "/etc/group"}

// scripts are the files of Argo CD's sources that its programs call.
var scripts = []string{"git-verify-wrapper.sh", "gpg-wrapper.sh"}

// Images returns the images of Argo CD's pods. programs are the lab's programs by the names of their tools, data is the folder of argo-cd's
// data, and authorities is the file with the CAs that containers trust.
func Images(programs map[string]string, data, authorities string) map[string]workload.Image {
	files := map[string]string{
		"/usr/local/bin/helm": programs["helm"], "/usr/local/bin/kustomize": programs["kustomize"],
		authorities: authorities, "/etc/ssl/certs/ca-certificates.crt": authorities,
	}
	for _, name := range parts {
		files["/usr/local/bin/"+name] = programs["argo-cd"]
	}
	for _, name := range scripts {
		files["/usr/local/bin/"+name] = filepath.Join(data, name)
	}
	redis := map[string]string{"/usr/local/bin/redis-server": programs["redis"], "/usr/local/bin/redis-cli": programs["redis"]}
	for _, path := range machine {
		if _, err := os.Stat(path); err == nil {
			files[path], redis[path] = path, path
		}
	}
	const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	return map[string]workload.Image{
		image: {
			Files: files, Names: true, WorkDir: "/home/argocd", Build: missing(programs, "argo-cd", "helm", "kustomize"),
			Entrypoint: []string{}, // tini, which runs the arguments
			Env: map[string]string{
				"PATH": path, "HOME": "/home/argocd", "USER": "argocd", "GRPC_ENABLE_TXT_SERVICE_CONFIG": "false",
				"ARGOCD_GPG_ENABLED": "false", // it needs programs and entropy that a machine may lack
			},
			// The chart's cp leaves a file that is there already, and names this in the words of coreutils 9.3.
			Other: map[string]string{"--update=none": "--update"},
		},
		redisImage: {
			Files: redis, Env: map[string]string{"PATH": path}, WorkDir: "/data", Entrypoint: []string{"redis-server"},
			Build: missing(programs, "redis"),
		},
	}
}

// missing returns Build if one of the tools is not built, and "" otherwise.
func missing(programs map[string]string, tools ...string) string {
	for _, tool := range tools {
		if programs[tool] == "" {
			return Build
		}
	}
	return ""
}
