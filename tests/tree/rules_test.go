package tree

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// good is a tree that keeps all rules.
var good = map[string]string{
	"clusters/infra/web.yaml": `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: issuers, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 1m
  timeout: 5m
  prune: true
  wait: true
  path: ./issuers
  sourceRef: {kind: GitRepository, name: flux-system}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: charts, namespace: flux-system}
spec:
  interval: 1h
  retryInterval: 1m
  timeout: 5m
  prune: true
  wait: true
  path: ./charts
  sourceRef: {kind: GitRepository, name: flux-system}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux-system}
spec:
  dependsOn: [{name: issuers}, {name: charts}] # of web
  interval: 1h
  retryInterval: 1m
  timeout: 5m
  prune: true
  wait: true
  path: ./apps/${KIND}
  sourceRef: {kind: GitRepository, name: flux-system}
  postBuild:
    substituteFrom: [{kind: ConfigMap, name: cluster-settings}]
`,
	"issuers/issuer.yaml": `apiVersion: cert-manager.io/v1
kind: ClusterIssuer
metadata: {name: own}
spec: {selfSigned: {}}
`,
	"charts/chart.yaml": `apiVersion: v1
kind: Namespace
metadata:
  name: charts
  labels: {pod-security.kubernetes.io/enforce: baseline}
  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled} # of the releases
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: charts, namespace: charts}
spec: {podSelector: {}, policyTypes: [Ingress]}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: charts, namespace: charts}
spec: {interval: 1h, url: https://charts.example.com}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: other, namespace: charts}
spec: {interval: 1h, url: oci://charts.example.com/other, ref: {tag: 0.4.1}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: chart, namespace: charts}
spec:
  interval: 1h
  timeout: 5m
  releaseName: chart
  dependsOn: [{name: other}] # of chart
  driftDetection: {mode: enabled}
  install: {crds: Skip, strategy: {name: RetryOnFailure}}
  upgrade: {crds: Skip, remediation: {retries: 3}}
  chart: {spec: {chart: chart, version: 1.2.3, sourceRef: {kind: HelmRepository, name: charts}}}
  values: {image: {tag: v1.2}}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: other, namespace: charts}
spec:
  interval: 1h
  timeout: 5m
  releaseName: other
  driftDetection: {mode: enabled}
  install: {crds: Skip, strategy: {name: RetryOnFailure}}
  upgrade: {crds: Skip, strategy: {name: RetryOnFailure}}
  chartRef: {kind: OCIRepository, name: other}
`,
	"apps/web/kustomization.yaml": `apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [web.yaml, gateway.yaml]
`,
	"apps/web/web.yaml": `apiVersion: v1
kind: Namespace
metadata:
  name: web
  labels: {pod-security.kubernetes.io/enforce: restricted}
  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled} # of the namespace
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: web, namespace: web}
spec:
  endpointSelector: {}
  ingress:
    - fromEntities: [ingress]
    - fromEndpoints: [{matchLabels: {"k8s:io.cilium.k8s.policy.cluster": "${CLUSTER_NAME}"}}]
    - fromEndpoints: [{matchExpressions: [{key: "k8s:io.cilium.k8s.policy.cluster", operator: Exists}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web, namespace: web}
data: {cluster: "${CLUSTER_NAME}", zone: "${ZONE:=a}"}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: web, namespace: web, annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}} # of the claim
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      volumes:
        - {name: web, configMap: {name: web}}
        - {name: tls, secret: {secretName: web-tls}}
      containers:
        - name: web
          image: ghcr.io/example/web:6.9.0
          resources: {requests: {cpu: 10m, memory: 16Mi}, limits: {memory: 16Mi}}
          securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: web}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: shared, namespace: web, annotations: {service.cilium.io/global: "true"}}
spec: {selector: {app: web}, ports: [{port: 81}]}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: web, namespace: web}
spec: {secretName: web-tls, dnsNames: [web.example.com], issuerRef: {kind: ClusterIssuer, name: own}}
`,
	"apps/web/gateway.yaml": `apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: web, namespace: web, annotations: {cert-manager.io/cluster-issuer: own}}
spec:
  gatewayClassName: cilium
  listeners:
    - {name: https, port: 443, protocol: HTTPS, hostname: "*.example.com", tls: {certificateRefs: [{name: gateway-tls}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: web}
spec:
  parentRefs: [{name: web, sectionName: https}]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: board, namespace: web, labels: {grafana_dashboard: "1"}}
data: {board.json: '{"panels": [{"title": "Up", "targets": [{"expr": "sum(flux_resource_info)"}]}]}'}
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: web, namespace: web}
spec: {groups: [{name: web, rules: [{alert: WebDown, expr: sum by (pod) (up) == 0}]}]}
`,
}

var goodSettings = map[string]string{"KIND": "web", "CLUSTER_NAME": "infra"}

// problemsOf are all that the checks find in the tree with an edit.
func problemsOf(t *testing.T, before, after string) string {
	t.Helper()
	files, edited := filesys.MakeFsInMemory(), before == ""
	for name, text := range good {
		edited = edited || strings.Contains(text, before)
		require.NoError(t, files.WriteFile(name, []byte(strings.ReplaceAll(text, before, after))))
	}
	require.True(t, edited, "the tree contains %q", before)
	layers, err := Build(files, "clusters/infra", goodSettings)
	known, readErr := schemas()
	require.NoError(t, readErr)
	one := tree{layers: layers}
	problems := []error{err}
	for _, layer := range layers {
		for _, object := range layer.Objects {
			problems = append(problems, known.Validate(object))
		}
	}
	for _, rule := range rules {
		rule.check(&one)
	}
	for _, problem := range one.problems {
		problems = append(problems, errors.New(problem))
	}
	if err := errors.Join(problems...); err != nil {
		return err.Error()
	}
	return ""
}

func TestChecks_FindNothingInAGoodTree(t *testing.T) {
	assert.Empty(t, problemsOf(t, "", ""))
}

func TestChecks_FindEachFault(t *testing.T) {
	type fault struct{ name, before, after, message string }
	for _, one := range []fault{
		// paths and variables
		{"a path that does not exist", "./apps/${KIND}", "./apps/gone", "Kustomization web (apps/gone): the folder does not exist"},
		{"a folder that does not build", "[web.yaml, gateway.yaml]", "[web.yaml, gone.yaml]", "gone.yaml"},
		{"a variable that nobody defines", "${CLUSTER_NAME}", "${CLUSTER}", "ConfigMap web: variable not set (strict mode): \"CLUSTER\""},
		{"a source of settings that nobody makes", "name: cluster-settings", "name: other-settings", "which nothing defines"},
		{"two layers of one name",
			"{name: charts, namespace: flux-system}",
			"{name: issuers, namespace: flux-system}", "may not add resource with an already registered id"},
		// schemas
		{"a field that a built-in kind does not have", "replicas: 2", "replica: 2", `unknown field "spec.replica"`},
		{"a value of another type", "replicas: 2", `replicas: "two"`, "cannot unmarshal string"},
		{"a field that a custom resource does not have",
			"secretName: web-tls, dns", "secretNames: web-tls, dns", "spec.secretNames: is no field"},
		{"a field that a custom resource requires", "gatewayClassName: cilium\n", "infrastructure: {}\n", "spec.gatewayClassName: Required"},
		{"a rule of a CRD in CEL", "protocol: HTTPS", "protocol: HTTP", "tls must not be specified for protocols"},
		{"a kind without a schema",
			"kind: ClusterIssuer\nmetadata", "kind: ClusterIssue\nmetadata", "there is no schema of cert-manager.io/v1 ClusterIssue"},
		{"a namespace missing", "{name: chart, namespace: charts}", "{name: chart}", "the kind is namespaced: true"},
		// Flux
		{"no wait", "wait: true\n  path: ./apps", "wait: false\n  path: ./apps", "neither waits nor has health checks"},
		{"no prune", "prune: true\n  wait: true\n  path: ./apps", "force: false\n  wait: true\n  path: ./apps", "has no spec.prune"},
		{"no retry",
			"upgrade: {crds: Skip, remediation: {retries: 3}}",
			"upgrade: {crds: Skip}", "does not retry; write spec.upgrade.strategy.name"},
		{"no correction of drift", "driftDetection: {mode: enabled}", "suspend: false", "does not correct changes by hand"},
		{"no release name", "releaseName: other", "storageNamespace: charts", "has no spec.releaseName"},
		// versions
		{"a range of versions", "version: 1.2.3", "version: 1.x", `"1.x" is not one version`},
		{"no version", "chart: chart, version: 1.2.3,", "chart: chart,", `spec.chart.spec.version: "" is not one version`},
		{"an artifact that moves", "tag: 0.4.1", "tag: latest", `spec.ref.tag: "latest" is not one version`},
		{"an image without a tag", "web:6.9.0", "web", "has no tag of one release"},
		{"an image with latest", "web:6.9.0", "web:latest", "has no tag of one release"},
		{"a tag in values", "tag: v1.2}", "tag: main}", `values.image.tag: "main" is no version`},
		{"CRDs by a chart", "install: {crds: Skip,", "install: {crds: Create,", "write spec.install.crds: Skip"},
		{"CRDs by default", "upgrade: {crds: Skip, remediation", "upgrade: {remediation", "write spec.upgrade.crds: Skip"},
		// references
		{"a dependency that does not exist",
			"[{name: issuers}, {name: charts}] # of web", "[{name: issuers}, {name: gone}]", "names Kustomization flux-system/gone"},
		{"a circle of layers",
			"path: ./charts\n", "path: ./charts\n  dependsOn: [{name: web}]\n", "Kustomization flux-system/web: waits for itself"},
		{"a circle of releases",
			"chartRef: {kind", "dependsOn: [{name: chart}]\n  chartRef: {kind", "HelmRelease charts/other: waits for itself"},
		{"a chart's source that does not exist",
			"sourceRef: {kind: HelmRepository, name: charts}",
			"sourceRef: {kind: HelmRepository, name: gone}", "names HelmRepository charts/gone"},
		{"a chart's artifact that does not exist",
			"chartRef: {kind: OCIRepository, name: other}",
			"chartRef: {kind: OCIRepository, name: gone}", "names OCIRepository charts/gone"},
		{"a ConfigMap that does not exist", "configMap: {name: web}", "configMap: {name: gone}", "names ConfigMap web/gone"},
		{"a Secret that nothing makes", "secretName: web-tls}", "secretName: gone}", "names Secret web/gone"},
		{"an issuer that does not exist",
			"issuerRef: {kind: ClusterIssuer, name: own}", "issuerRef: {kind: ClusterIssuer, name: gone}", "names ClusterIssuer gone"},
		{"an issuer of a gateway that does not exist",
			"cert-manager.io/cluster-issuer: own", "cert-manager.io/cluster-issuer: gone", "names ClusterIssuer gone"},
		{"a gateway that does not exist", "parentRefs: [{name: web,", "parentRefs: [{name: gone,", "names Gateway web/gone"},
		{"a listener that does not exist", "sectionName: https", "sectionName: http", "names listener http"},
		{"a port that does not exist", "{name: web, port: 80}]}", "{name: web, port: 81}]}", "names port 81, which Service web does not have"},
		{"a Service without pods", "selector: {app: web}, ports: [{port: 80}]", "selector: {app: gone}, ports: [{port: 80}]",
			"Service web/web: selects no pods"},
		{"a Service of a mesh without pods here", "selector: {app: web}, ports: [{port: 81}]", "selector: {app: gone}, ports: [{port: 81}]",
			"Service web/shared: selects no pods"},
		// order
		{"a layer that does not wait for its issuer",
			"[{name: issuers}, {name: charts}] # of web", "[{name: charts}]", "its Kustomization does not wait for issuers"},
		{"a namespace that nobody makes",
			"metadata: {name: web, namespace: web}\nspec:\n  endpointSelector",
			"metadata: {name: web, namespace: gone}\nspec:\n  endpointSelector", "namespace gone is not in the tree"},
		// namespaces, data, rules, workloads
		{"an expression that is none", "sum by (pod) (up) == 0", "sum by (pod (up) == 0", "PrometheusRule web/web: WebDown: "},
		{"a metric that Cilium does not have",
			"sum by (pod) (up) == 0", "sum by (pod) (cilium_gone) == 0", "WebDown: there is no known metric cilium_gone"},
		{"a metric of a dashboard that Flux does not have", "sum(flux_resource_info)", "sum(flux_gone)",
			"ConfigMap web/board: board.json: Up: there is no known metric flux_gone"},
		{"a dashboard that is none", `{"panels":`, `{"panel":`, "ConfigMap web/board: board.json: is no dashboard with panels"},
		{"no level of pod security",
			"labels: {pod-security.kubernetes.io/enforce: baseline}",
			"labels: {}", "Namespace charts: label pod-security.kubernetes.io/enforce"},
		{"no network policy",
			"kind: NetworkPolicy\nmetadata: {name: charts, namespace: charts}",
			"kind: NetworkPolicy\nmetadata: {name: charts, namespace: default}", "Namespace charts: has no network policy"},
		{"a policy for some pods only",
			"endpointSelector: {}", "endpointSelector: {matchLabels: {app: web}}", "Namespace web: has no network policy for all of its pods"},
		{"a policy of Kubernetes for some pods only",
			"podSelector: {}", "podSelector: {matchLabels: {app: web}}", "Namespace charts: has no network policy for all of its pods"},
		{"a policy that restricts what goes out only",
			"policyTypes: [Ingress]", "policyTypes: [Egress]", "Namespace charts: has no network policy for all of its pods"},
		{"a policy that denies nothing by default",
			"endpointSelector: {}\n", "endpointSelector: {}\n  enableDefaultDeny: {ingress: false}\n",
			"Namespace web: has no network policy for all of its pods"},
		{"a policy that depends on Cilium's default for meshes",
			`{matchLabels: {"k8s:io.cilium.k8s.policy.cluster": "${CLUSTER_NAME}"}}`, "{}",
			"CiliumNetworkPolicy web/web: fromEndpoints: does not say which cluster"},
		{"data that is removed",
			", annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}} # of the claim",
			"}", "PersistentVolumeClaim web/web: is removed with its data"},
		{"a namespace with data that is removed",
			"  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled} # of the namespace",
			"", "Namespace web: is removed with its data"},
		{"a namespace that is removed with the record of a release",
			"  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled} # of the releases",
			"", "Namespace charts: is removed together with the record of HelmRelease other"},
		{"no requests", "requests: {cpu: 10m, memory: 16Mi}", "requests: {memory: 16Mi}", "container web requests no cpu"},
		{"no limit of memory", ", limits: {memory: 16Mi}", "", "container web has no limit of memory"},
		{"no budget",
			"kind: PodDisruptionBudget\nmetadata: {name: web, namespace: web}",
			"kind: PodDisruptionBudget\nmetadata: {name: web, namespace: charts}", "has 2 replicas and no PodDisruptionBudget"},
		{"a pod that its namespace refuses", "drop: [ALL]", "add: [NET_ADMIN]", "its namespace admits no such pod (restricted)"},
	} {
		t.Run(one.name, func(t *testing.T) {
			assert.Contains(t, problemsOf(t, one.before, one.after), one.message)
		})
	}
}

func TestRender_RefusesAnotherVersionAndUnknownValues(t *testing.T) {
	release := func(chart, version string, values map[string]any) Object {
		return Object{Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "helm.toolkit.fluxcd.io/v2", "kind": "HelmRelease", "metadata": map[string]any{"name": "a", "namespace": "a"},
			"spec": map[string]any{
				"releaseName": "a", "values": values, "chart": map[string]any{"spec": map[string]any{"chart": chart, "version": version}},
			},
		}}}
	}
	_, _, err := Render(release("cloudnative-pg", "0.29.0", map[string]any{}))
	require.NoError(t, err)
	_, _, err = Render(release("cloudnative-pg", "0.28.0", map[string]any{}))
	require.EqualError(t, err, "spec.chart.spec.version: is 0.28.0, and the chart that can be had is 0.29.0")
	_, _, err = Render(release("cloudnative-pg", "0.29.0", map[string]any{"replica": int64(2)}))
	require.ErrorContains(t, err, "replica")
	_, _, err = Render(release("gone", "1.0.0", nil))
	require.ErrorContains(t, err, "chart gone cannot be had")
}
