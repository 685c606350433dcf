package main

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
)

// boundsOf returns which whole numbers the kubelet's own validation takes, by the names of the fields in Go: "[0,100]", or "[1,]" without
// an upper bound. Fields that take all are left out.
func boundsOf(t *testing.T) map[string]string {
	defaults, err := options.NewKubeletConfiguration()
	if err != nil {
		t.Fatal(err)
	}
	var numbers []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.KubeletConfiguration]()) {
		if field.Type.Kind() == reflect.Int32 || field.Type.Kind() == reflect.Int64 && field.Type.PkgPath() == "" {
			numbers = append(numbers, field.Name)
		}
	}
	// Two fields may depend on each other, so that a number counts as taken if it is taken beside other values of the others.
	takes := func(name string, value int64) bool {
		for _, beside := range []int64{unchanged, 0, 1, 100} {
			if validates(defaults, numbers, beside, name, value) {
				return true
			}
		}
		return false
	}
	bounds := map[string]string{}
	for _, name := range numbers {
		inside := reflect.ValueOf(defaults).Elem().FieldByName(name).Int()
		least, most := edge(inside, math.MinInt32, name, takes), edge(inside, math.MaxInt32, name, takes)
		bounds[name] = limits(least, most)
	}
	return bounds
}

// edge returns the last number that is taken on the way from one that is to another.
func edge(taken, end int64, name string, takes func(string, int64) bool) int64 {
	if takes(name, end) {
		return end
	}
	for refused := end; ; {
		middle := taken + (refused-taken)/2
		if middle == taken {
			return taken
		}
		if takes(name, middle) {
			taken = middle
		} else {
			refused = middle
		}
	}
}

// unchanged stands for the defaults of the other fields.
const unchanged = math.MinInt64

// validates tells whether the kubelet finds no more wrong with a number, beside some value of all other numbers, than without it.
func validates(defaults *config.KubeletConfiguration, numbers []string, beside int64, name string, value int64) bool {
	former := defaults.DeepCopy()
	for _, other := range numbers {
		if beside != unchanged && other != name {
			reflect.ValueOf(former).Elem().FieldByName(other).SetInt(beside)
		}
	}
	changed := former.DeepCopy()
	reflect.ValueOf(changed).Elem().FieldByName(name).SetInt(value)
	problems := func(of *config.KubeletConfiguration) string {
		if err := validation.ValidateKubeletConfiguration(of, utilfeature.DefaultFeatureGate); err != nil {
			return err.Error()
		}
		return ""
	}
	before := problems(former)
	for problem := range strings.SplitSeq(strings.Trim(problems(changed), "[]"), ", ") {
		if !strings.Contains(before, problem) {
			return false
		}
	}
	return true
}

// fieldOf returns the field in Go that a flag of the kubelet sets; "" if it sets no whole number and no text.
func fieldOf(t *testing.T, flag string) string {
	const unlikely = 7177 // also as a text
	changed, err := options.NewKubeletConfiguration()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	options.AddKubeletConfigFlags(flags, changed)
	if flags.Lookup(flag) == nil || flags.Set(flag, strconv.Itoa(unlikely)) != nil {
		return ""
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.KubeletConfiguration]()) {
		value := reflect.ValueOf(changed).Elem().FieldByIndex(field.Index)
		if value.CanInt() && value.Int() == unlikely || value.Kind() == reflect.String && value.String() == strconv.Itoa(unlikely) {
			return field.Name
		}
	}
	return ""
}
