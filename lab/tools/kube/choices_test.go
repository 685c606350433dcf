package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/client/pkg/v3/tlsutil"
	"go.etcd.io/etcd/server/v3/embed"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubeapiserver/authorizer/modes"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
)

// component makes the flags of a component, with a function that returns what its own validation finds wrong with them.
type component func(t *testing.T) (*pflag.FlagSet, func() []string)

// validated are the components whose validation says more than their flags' types.
var validated = map[string]component{
	"kube-apiserver": func(t *testing.T) (*pflag.FlagSet, func() []string) {
		options := apiserver.NewServerRunOptions()
		flags := together(options.Flags())
		for _, name := range []string{"audit-log-path", "audit-webhook-config-file"} { // without them, the options beside them are not read
			if err := flags.Set(name, "-"); err != nil {
				t.Fatal(err)
			}
		}
		return flags, func() []string {
			completed, err := options.Complete(context.Background())
			if err != nil {
				return texts(err)
			}
			return texts(append(completed.Validate(), logsapi.Validate(options.Logs, utilfeature.DefaultFeatureGate, nil).ToAggregate())...)
		}
	},
	"kube-controller-manager": func(t *testing.T) (*pflag.FlagSet, func() []string) {
		options, err := manager.NewKubeControllerManagerOptions()
		if err != nil {
			t.Fatal(err)
		}
		flags := together(options.Flags(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()))
		return flags, func() []string {
			return texts(options.Validate(app.KnownControllers(), app.ControllersDisabledByDefault(), app.ControllerAliases()),
				logsapi.Validate(options.Logs, utilfeature.DefaultFeatureGate, nil).ToAggregate())
		}
	},
	"kube-scheduler": func(t *testing.T) (*pflag.FlagSet, func() []string) {
		options := scheduler.NewOptions()
		config, err := latest.Default()
		if err != nil {
			t.Fatal(err)
		}
		options.ComponentConfig = config
		flags := together(*options.Flags)
		return flags, func() []string {
			return texts(append(options.Validate(), logsapi.Validate(options.Logs, utilfeature.DefaultFeatureGate, nil).ToAggregate())...)
		}
	},
	"kubelet": func(t *testing.T) (*pflag.FlagSet, func() []string) {
		config, err := kubelet.NewKubeletConfiguration()
		if err != nil {
			t.Fatal(err)
		}
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		kubelet.AddKubeletConfigFlags(flags, config)
		return flags, func() []string {
			return texts(validation.ValidateKubeletConfiguration(config, utilfeature.DefaultFeatureGate))
		}
	},
}

// together are the flags of all sections.
func together(sections cliflag.NamedFlagSets) *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	for _, set := range sections.FlagSets {
		flags.AddFlagSet(set)
	}
	return flags
}

// wordsOf are the words of flags that a component reads only when it starts, by its own lists of them.
var wordsOf = map[string][]string{
	"authorization-mode":         modes.AuthorizationModeChoices,
	"cpu-manager-policy":         {string(cpumanager.PolicyNone), string(cpumanager.PolicyStatic)},
	"etcd auto-compaction-mode":  {embed.CompactorModePeriodic, embed.CompactorModeRevision},
	"etcd log-format":            {"console", "json"},
	"etcd tls-min-version":       {string(tlsutil.TLSVersion12), string(tlsutil.TLSVersion13)},
	"kubelet authorization-mode": {"AlwaysAllow", "Webhook"},
	"memory-manager-policy":      {"None", string(memorymanager.PolicyTypeStatic)},
	"tls-cipher-suites":          cliflag.TLSCipherPossibleValues(),
	"tls-min-version":            cliflag.TLSPossibleVersions(),
}

func texts(errs ...error) (found []string) {
	for _, err := range errs {
		if err != nil && !(reflect.ValueOf(err).Kind() == reflect.Pointer && reflect.ValueOf(err).IsNil()) {
			found = append(found, err.Error())
		}
	}
	return found
}

// refusal returns what a component finds wrong with a flag's value; "" if nothing. What speaks of another flag, which is missing beside it,
// is no refusal of the value.
func (c component) refusal(t *testing.T, flag, value string) string {
	flags, problems := c(t)
	if err := flags.Set(flag, value); err != nil {
		return err.Error()
	}
	for _, problem := range problems() {
		if strings.Contains(problem, value) || strings.Contains(problem, flag+" invalid") {
			return problem
		}
	}
	return ""
}

var wordsIn = regexp.MustCompile(`[A-Za-z0-9][A-Za-z0-9_./-]*`)

// choiceOf returns what a component takes beyond the flag's type: limits of a number, such as [0,100], or the words of a text or of a list,
// such as {none,static}; "" if it takes all.
func choiceOf(t *testing.T, name string, f *pflag.Flag) string {
	words := wordsOf[name+" "+f.Name]
	if words == nil && name != "etcd" {
		words = wordsOf[f.Name]
	}
	c, kind := validated[name], f.Value.Type()
	switch {
	case words != nil:
	case c == nil || c.lacks(t, f.Name):
		return ""
	case kind == "string":
		refusal := c.refusal(t, f.Name, "no-such-word")
		if refusal == "" {
			return ""
		}
		// What the flag's own description and the refusal name is tried, and what the flag is by default.
		for _, word := range append(wordsIn.FindAllString(f.Usage+" "+refusal, -1), f.DefValue) {
			if word = strings.TrimRight(word, "."); word != "" && c.refusal(t, f.Name, word) == "" {
				words = append(words, word)
			}
		}
	case name != "kubelet" && slices.Contains([]string{"int", "int32", "int64"}, kind): // boundsOf has the kubelet's
		inside, err := strconv.ParseInt(f.DefValue, 10, 64)
		if err != nil {
			return ""
		}
		if strings.Contains(f.Name, "-batch-") {
			return "" // it is read only if batches and their throttling are on
		}
		takes := func(_ string, value int64) bool { return c.refusal(t, f.Name, strconv.FormatInt(value, 10)) == "" }
		least, most := edge(inside, math.MinInt32, f.Name, takes), edge(inside, math.MaxInt32, f.Name, takes)
		if c.isDefault(t, f.Name, least) {
			least = math.MinInt32
		}
		if c.isDefault(t, f.Name, most) {
			most = math.MaxInt32
		}
		return limits(least, most)
	}
	words = slices.Compact(slices.Sorted(slices.Values(words)))
	if len(words) < 2 { // the description names none
		return ""
	}
	return "{" + strings.Join(words, ",") + "}"
}

// isDefault tells whether a large limit is in the default of another flag: it moves with that flag.
func (c component) isDefault(t *testing.T, flag string, limit int64) bool {
	flags, _ := c(t)
	number, found := regexp.MustCompile(fmt.Sprintf(`(^|[^0-9])%d($|[^0-9])`, limit)), false
	flags.VisitAll(func(f *pflag.Flag) { found = found || f.Name != flag && number.MatchString(f.DefValue) })
	return found && limit >= 10000
}

// lacks tells whether the flag is not one of those that the component validates.
func (c component) lacks(t *testing.T, flag string) bool {
	flags, _ := c(t)
	return flags.Lookup(flag) == nil
}

// limits is how the table writes the limits of a number; "" if there are none.
func limits(least, most int64) string {
	switch {
	case least == math.MinInt32 && most == math.MaxInt32:
		return ""
	case most == math.MaxInt32:
		return fmt.Sprintf("[%d,]", least)
	default:
		return fmt.Sprintf("[%d,%d]", least, most)
	}
}

// quiet keeps what the components log while they are asked out of the test's output.
func quiet() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
}
