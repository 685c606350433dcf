package main

import (
	"bytes"
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/server/resourceconfig"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	stages "k8s.io/component-base/featuregate"
	"k8s.io/component-base/version"
	aggregator "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	schedulerconfig "k8s.io/kube-scheduler/config/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	plugins "k8s.io/kubernetes/pkg/kubeapiserver/options"
	schedulerplugins "k8s.io/kubernetes/pkg/scheduler/framework/plugins"
)

var update = flag.Bool("update", false, "write the table anew")

// TestArguments_AreThoseInSlipwaysTable compares the table of this minor release, by which config-check finds a mistyped flag, with the
// components themselves. -modfile 1.37.mod -update writes the table of another release.
func TestArguments_AreThoseInSlipwaysTable(t *testing.T) {
	tables := filepath.Join("..", "..", "..", "cluster", "machineconfig", "arguments")
	path, err := filepath.Abs(filepath.Join(tables, version.DefaultKubeBinaryVersion+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir()) // the API server writes a certificate into the folder that a flag names
	quiet()
	var lines []string
	bounds := boundsOf(t)
	for component, flags := range componentFlags(t) {
		flags.VisitAll(func(f *pflag.Flag) {
			choice := choiceOf(t, component, f)
			if field := fieldOf(t, f.Name); component == "kubelet" && field != "" {
				bounds[field] += choice // the field takes what its flag takes
				choice = bounds[field]
			}
			name := strings.ReplaceAll(f.Name, "_", "-") // as cli.Run has the components read both
			lines = append(lines, component+" "+name+" "+flagType(f)+choice)
		})
	}
	for gate, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		line := "feature-gate " + string(gate)
		if spec.LockToDefault {
			line += fmt.Sprintf(" %t", spec.Default)
		}
		lines = append(lines, line)
	}
	lines = append(lines, gateNeeds()...)
	for _, field := range fieldsOf("", reflect.TypeFor[kubeletconfig.KubeletConfiguration](), bounds, map[reflect.Type]string{}) {
		lines = append(lines, "kubelet-field "+field)
	}
	for _, field := range fieldsOf("", reflect.TypeFor[schedulerconfig.KubeSchedulerConfiguration](), nil, map[reflect.Type]string{}) {
		lines = append(lines, "scheduler-field "+field)
	}
	for plugin := range schedulerplugins.NewInTreeRegistry() {
		lines = append(lines, "scheduler-plugin "+plugin)
	}
	for _, controller := range app.KnownControllers() {
		lines = append(lines, "controller "+controller)
	}
	for alias, controller := range app.ControllerAliases() {
		lines = append(lines, "controller "+alias+" "+controller)
	}
	for gate := range embed.NewConfig().ServerFeatureGate.(featuregate.MutableFeatureGate).GetAll() {
		lines = append(lines, "etcd-feature-gate "+string(gate))
	}
	for _, plugin := range plugins.AllOrderedPlugins {
		lines = append(lines, "admission-plugin "+plugin)
	}
	for _, all := range []string{resourceconfig.APIAll, resourceconfig.APIAlpha, resourceconfig.APIBeta, resourceconfig.APIGA} {
		lines = append(lines, "api "+all)
	}
	for _, scheme := range []*runtime.Scheme{legacyscheme.Scheme, extensions.Scheme, aggregator.Scheme} { // APIEnablementOptions.Validate
		for _, version := range scheme.PrioritizedVersionsAllGroups() {
			lines = append(lines, "api "+version.Group+"/"+version.Version)
		}
	}
	slices.Sort(lines)
	lines = slices.Compact(lines)
	got := fmt.Appendf(nil, "%s\n", strings.Join(lines, "\n"))

	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s is not what the components take: go test . -update writes it anew", path)
	}
}

// gateNeeds returns which feature gates need which others, and the defaults of both, with the gate that sets all of their stage.
func gateNeeds() (lines []string) {
	all := utilfeature.DefaultMutableFeatureGate.GetAll()
	groups := map[any]string{stages.Alpha: ",AllAlpha", stages.Beta: ",AllBeta"}
	for gate, needs := range utilfeature.DefaultMutableFeatureGate.Dependencies() {
		if len(needs) == 0 {
			continue
		}
		for _, one := range append(slices.Clone(needs), gate) {
			lines = append(lines, fmt.Sprintf("gate-default %s %t%s", one, all[one].Default, groups[all[one].PreRelease]))
		}
		lines = append(lines, fmt.Sprintf("gate-needs %s %s", gate, strings.ReplaceAll(strings.Trim(fmt.Sprint(needs), "[]"), " ", ",")))
	}
	return lines
}

// flagType names the type of a flag. Several types of maps, with different forms, call themselves mapStringString.
func flagType(f *pflag.Flag) string {
	name := f.Value.Type()
	if name == "mapStringString" {
		return reflect.TypeOf(f.Value).Elem().Name()
	}
	return name
}

// fieldsOf returns the fields of a type, with their types, and what is below them: a.b is in a mapping, a[] an item of a list, and a.* a
// value of a mapping with any keys. =a is a type that a field before has. What is below a type with a form of its own is left out.
func fieldsOf(path string, of reflect.Type, bounds map[string]string, seen map[reflect.Type]string) (lines []string) {
	add := func(name string, of reflect.Type, limits string) {
		field := path + name
		if seen[of] != "" {
			lines = append(lines, field+" ="+seen[of])
			return
		}
		if of.Kind() == reflect.Struct && typeOf(of) == "map" {
			seen[of] = field
		}
		lines = append(lines, strings.TrimRight(field+" "+typeOf(of)+limits, " "))
		lines = append(lines, fieldsOf(field, of, nil, seen)...)
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	switch kind := of.Kind(); {
	case typeOf(of) == "list":
		add("[]", of.Elem(), "")
	case kind == reflect.Map:
		add(".*", of.Elem(), "")
	case kind == reflect.Struct && typeOf(of) == "map":
		if path != "" {
			path += "."
		}
		for _, field := range reflect.VisibleFields(of) {
			if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
				add(name, field.Type, bounds[field.Name])
			}
		}
	}
	return lines
}

// typeOf names the type of a field as config-check knows it; "" for one that has a form of its own.
func typeOf(field reflect.Type) string {
	if field.Kind() == reflect.Pointer {
		field = field.Elem()
	}
	reads := reflect.PointerTo(field).Implements
	switch kind := field.Kind(); {
	case field == reflect.TypeFor[metav1.Duration]():
		return "duration"
	case reads(reflect.TypeFor[json.Unmarshaler]()), reads(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return ""
	case field == reflect.TypeFor[[]byte]():
		return "string"
	case kind == reflect.Slice:
		return "list"
	case kind == reflect.Map, kind == reflect.Struct:
		return "map"
	default:
		return kind.String()
	}
}

// componentFlags returns the flags that each component takes, hidden ones too. etcd is the one that this release of Kubernetes is tested
// with: Talos chooses its own, of the same minor release or of the one before.
func componentFlags(t *testing.T) map[string]*pflag.FlagSet {
	kubelet := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	options.NewKubeletFlags().AddFlags(kubelet)
	config, err := options.NewKubeletConfiguration()
	if err != nil {
		t.Fatal(err)
	}
	options.AddKubeletConfigFlags(kubelet, config)
	options.AddGlobalFlags(kubelet)
	flags := map[string]*pflag.FlagSet{"kubelet": kubelet}
	for _, component := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		flags[component] = commands[component]().Flags()
	}
	ofEtcd := flag.NewFlagSet("etcd", flag.ContinueOnError)
	embed.NewConfig().AddFlags(ofEtcd)
	flags["etcd"] = pflag.NewFlagSet("etcd", pflag.ContinueOnError)
	flags["etcd"].AddGoFlagSet(ofEtcd)
	return flags
}
