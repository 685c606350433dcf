package kubelet

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/lab/workload"
)

// asProgram makes this test binary act as a controller: it answers the health probe once it has read its own pod with
// its service account.
const asProgram = "SLIPWAY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		if err := controller(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func controller(args []string) error {
	f := flag.NewFlagSet("controller", flag.ContinueOnError)
	for _, name := range []string{"metrics-addr", "events-addr", "enable-leader-election"} {
		f.String(name, "", "")
	}
	health := f.String("health-addr", "", "")
	if err := f.Parse(args); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	pod, err := client.CoreV1().Pods(os.Getenv("RUNTIME_NAMESPACE")).Get(context.Background(), os.Getenv("HOSTNAME"), metav1.GetOptions{})
	if err != nil {
		return err
	}
	fmt.Println("I am", pod.Name, "and listen on", *health)
	return http.ListenAndServe(*health, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}

func TestKubelets_RunAProgramWithItsPodsAddressAndIdentity(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	r := startReal(t, workload.Registry{Programs: map[string]workload.Program{"kustomize-controller": {Path: self}}, Env: []string{asProgram + "=1"}})
	r.deploy(t)
	ctx := t.Context()
	ns := "flux-system"
	_, err = r.api.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.api.CoreV1().ServiceAccounts(ns).Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "kustomize-controller"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = r.api.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "x"},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "kustomize-controller", Namespace: ns}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	labels, one := map[string]string{"app": "kustomize-controller"}, int32(1)
	_, err = r.api.AppsV1().Deployments(ns).Create(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "kustomize-controller"}, Spec: appsv1.DeploymentSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
			Spec: corev1.PodSpec{ServiceAccountName: "kustomize-controller", Containers: []corev1.Container{{Name: "manager", Image: "ghcr.io/fluxcd/kustomize-controller:v1.9.5",
				Args:           []string{"--events-addr=http://notification-controller.$(RUNTIME_NAMESPACE).svc.cluster.local./", "--enable-leader-election=true"},
				Env:            []corev1.EnvVar{{Name: "RUNTIME_NAMESPACE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}}}},
				Ports:          []corev1.ContainerPort{{Name: "healthz", ContainerPort: 9440}},
				ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromString("healthz")}}},
			}}}}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	r.eventually(t, "the program is ready", func() bool {
		d, err := r.api.AppsV1().Deployments(ns).Get(ctx, "kustomize-controller", metav1.GetOptions{})
		return err == nil && d.Status.ReadyReplicas == 1
	})
	list, err := r.api.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	pod := list.Items[0]
	log, err := r.api.CoreV1().Pods(ns).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(ctx)
	require.NoError(t, err)
	require.Contains(t, string(log), "I am "+pod.Name+" and listen on "+pod.Status.PodIP+":9440")
	processes := r.table.List()
	require.Len(t, processes, 5)
	require.Equal(t, ns+"/"+pod.Name, processes[4].Name)
	require.Equal(t, pod.Spec.NodeName, processes[4].Node)
	require.FileExists(t, processes[4].Log)

	require.NoError(t, r.api.AppsV1().Deployments(ns).Delete(ctx, "kustomize-controller", metav1.DeleteOptions{}))
	r.eventually(t, "the program ends with its pod", func() bool { return len(r.table.List()) == 4 })
	r.eventually(t, "the token goes with the pod", func() bool {
		left, err := filepath.Glob(filepath.Join(r.o.Dir, "pods", "*kustomize-controller*"))
		return err == nil && len(left) == 0
	})
}
