// The programs of a Kubernetes control plane, in one: the name it is called by,
// or its first argument, says which one it is. One program links in a third of
// the time of five, and the five share its pages in memory.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func command(newCommand func() *cobra.Command) func([]string) int {
	return func([]string) int { return cli.Run(newCommand()) }
}

var programs = map[string]func(args []string) int{
	"etcd": func(args []string) int {
		etcdmain.Main(args)
		return 0
	},
	"kube-apiserver":          command(apiserver.NewAPIServerCommand),
	"kube-controller-manager": command(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          command(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
	"kubectl": func([]string) int {
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err) // prints it as kubectl does, and exits
		}
		return 0
	},
}

func main() {
	args := os.Args
	if programs[filepath.Base(args[0])] == nil && len(args) > 1 {
		args = args[1:]
	}
	run := programs[filepath.Base(args[0])]
	if run == nil {
		names := make([]string, 0, len(programs))
		for name := range programs {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "control-plane: call it as one of: %s\n", strings.Join(names, ", "))
		os.Exit(2)
	}
	args[0] = filepath.Base(args[0])
	os.Args = args
	os.Exit(run(args))
}
