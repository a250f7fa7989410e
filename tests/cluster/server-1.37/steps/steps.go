// Package steps stands in for the steps of test/integration/scheduler/podgroup: they are written down, for somebody else to play.
package steps

import (
	"encoding/json"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1alpha3 "k8s.io/api/scheduling/v1alpha3"
	schedulingapi "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
	"k8s.io/kubernetes/pkg/features"
	"pumice.test/server/util"
)

type WaitForAnyPodsScheduled struct {
	Pods                           []*v1.Pod
	NumScheduled, NumUnschedulable int
}

type PodGroupConditionCheck struct {
	PodGroupName    string
	ConditionStatus metav1.ConditionStatus
	Reason          string
}

type VerifyAssignments struct {
	Pods  []string
	Nodes sets.Set[string]
}

type VerifyAssignedInOneDomain struct {
	Pods        []string
	TopologyKey string
}

type VerifyPodsSchedulingAttempts struct {
	PodNames     []string
	PodGroupName string
	Attempts     int
}

type UpdatePod struct {
	PodName  string
	ModifyFn func(*v1.Pod) `json:"-"`
	Pod      *v1.Pod
}

type Step struct {
	Name                                string                                `json:",omitempty"`
	CreateNodes                         []*v1.Node                            `json:",omitempty"`
	CreatePodGroup                      *schedulingapi.PodGroup               `json:",omitempty"`
	UpdatePodGroup                      *schedulingapi.PodGroup               `json:",omitempty"`
	DeletePodGroup                      string                                `json:",omitempty"`
	CreateCompositePodGroup             *schedulingv1alpha3.CompositePodGroup `json:",omitempty"`
	UpdateCompositePodGroup             *schedulingv1alpha3.CompositePodGroup `json:",omitempty"`
	CreatePods                          []*v1.Pod                             `json:",omitempty"`
	CreatePodsInOrder                   []*v1.Pod                             `json:",omitempty"`
	CreateWorkloads                     []*schedulingapi.Workload             `json:",omitempty"`
	DeletePods                          []string                              `json:",omitempty"`
	WaitForPodsInUnschedulableEntities  []string                              `json:",omitempty"`
	WaitForPodsInIncompletePodGroupPods []string                              `json:",omitempty"`
	WaitForPodsUnschedulable            []string                              `json:",omitempty"`
	WaitForPodsSchedulingError          []string                              `json:",omitempty"`
	WaitForPodsScheduled                []string                              `json:",omitempty"`
	WaitForPodsRemoved                  []string                              `json:",omitempty"`
	WaitForAnyPodsScheduled             *WaitForAnyPodsScheduled              `json:",omitempty"`
	WaitForPodGroupCondition            *PodGroupConditionCheck               `json:",omitempty"`
	VerifyAssignments                   *VerifyAssignments                    `json:",omitempty"`
	VerifyAssignedInOneDomain           *VerifyAssignedInOneDomain            `json:",omitempty"`
	UpdatePod                           *UpdatePod                            `json:",omitempty"`
	WaitForPodsInActiveQ                []string                              `json:",omitempty"`
	RunScheduleOne                      bool                                  `json:",omitempty"`
	VerifyPodSchedulingAttempts         *VerifyPodsSchedulingAttempts         `json:",omitempty"`
}

var gates = []featuregate.Feature{features.GenericWorkload, features.TopologyAwareWorkloadScheduling, features.CompositePodGroup}

// RunSteps appends a line to the file that STEPS names, unless a step needs the scheduler in this process.
func RunSteps(context *util.TestContext, t *testing.T, _ string, steps []Step) error {
	pods := map[string]*v1.Pod{}
	for _, step := range steps {
		if step.RunScheduleOne || step.WaitForPodsInActiveQ != nil {
			return nil
		}
		for _, pod := range append(step.CreatePods, step.CreatePodsInOrder...) {
			pods[pod.Name] = pod
		}
		if update := step.UpdatePod; update != nil {
			update.Pod = pods[update.PodName].DeepCopy()
			update.ModifyFn(update.Pod)
		}
	}
	on := map[featuregate.Feature]bool{}
	for _, gate := range gates {
		on[gate] = utilfeature.DefaultFeatureGate.Enabled(gate)
	}
	line, err := json.Marshal(map[string]any{
		"name": t.Name(), "gates": on, "steps": steps, "volumes": context.Volumes, "claims": context.Claims,
	})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(os.Getenv("STEPS"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = file.Write(append(line, '\n'))
	return err
}
