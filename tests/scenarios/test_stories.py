"""Whole stories: gangs that wait and grow, queues that lend and take back, nodes that come and go."""

from __future__ import annotations

from tests.scenarios.play import play


def test_a_gang_waits_for_the_last_member() -> None:
    play("""
      nodes a b     cpu=2
      job train     tasks=3 cpu=2
      cycle         train: Inqueue, 0 bound, "holds 0 of the 4 cpu it deserves, 6 more is asked for"
      cycle         train: Inqueue, 0 bound
      nodes c       cpu=2
      cycle         train: Inqueue, 3 bound
      cycle         train: Running, 3 bound
      finish train
      cycle         train: Completed, 0 bound
    """)


def test_an_elastic_job_starts_small_and_grows_with_the_cluster() -> None:
    play("""
      nodes a       cpu=2
      job sweep     tasks=5 min=1 cpu=1
      cycle         sweep: 2 bound
      nodes b       cpu=2
      cycle         sweep: Running, 4 bound
      delete sweep-0
      cycle         sweep: Running, 4 bound
    """)


def test_two_gangs_that_fit_only_one_after_the_other_do_not_lock_each_other() -> None:
    play("""
      nodes a b     cpu=2
      job first     tasks=3 cpu=1
      job second    tasks=3 cpu=1
      cycle         first: 3 bound; second: 0 bound
      cycle         first: Running; second: Inqueue, 0 bound
      finish first
      cycle         first: Completed; second: 3 bound
    """)


def test_the_urgent_gang_preempts_just_enough_and_runs_in_the_next_cycle() -> None:
    play("""
      class high 1000
      class low 1
      actions enqueue, allocate, preempt
      nodes a b     cpu=4
      job idle      tasks=8 min=1 cpu=1 priority=low
      cycle         idle: 8 bound
      job urgent    tasks=2 cpu=2 priority=high
      cycle         idle: 4 evicted, Running; urgent: 2 waiting, Inqueue
      cycle         urgent: 2 bound; idle: 0 evicted
      cycle         urgent: Running, 2 bound; idle: Running, 4 bound
    """)


def test_an_urgent_gang_that_cannot_find_all_its_places_evicts_nobody() -> None:
    play("""
      class high 1000
      class low 1
      actions enqueue, allocate, preempt
      nodes a       cpu=4
      job idle      tasks=4 min=1 cpu=1 priority=low
      cycle         idle: 4 bound
      job urgent    tasks=3 cpu=2 priority=high
      cycle         idle: 0 evicted, Running, 4 bound; urgent: 0 waiting
      cycle         idle: 0 evicted, 4 bound
    """)


def test_a_queue_lends_what_it_does_not_need_and_takes_it_back_when_it_does() -> None:
    play("""
      actions enqueue, allocate, reclaim
      queue a       deserved=4
      queue b       deserved=4
      nodes n       cpu=8
      job lent      tasks=8 min=1 cpu=1 queue=a
      cycle         lent: 8 bound
      job due       tasks=3 cpu=1 queue=b
      cycle         lent: 3 evicted; due: 3 waiting
      cycle         due: 3 bound; lent: 0 evicted
      cycle         due: Running; lent: Running, 5 bound
    """)


def test_a_reclaiming_queue_stops_at_what_it_deserves() -> None:
    play("""
      actions enqueue, allocate, reclaim
      queue a b
      nodes n       cpu=8
      job full      tasks=8 min=1 cpu=1 queue=a
      cycle         full: 8 bound
      job b1 b2 b3 b4 b5 b6     cpu=1 queue=b
      cycle         full: 4 evicted
      cycle         full: 0 evicted, 4 bound
      cycle         full: 0 evicted, 4 bound
    """)


def test_pods_of_a_lost_node_are_placed_elsewhere_once_they_are_made_again() -> None:
    play("""
      nodes a b     cpu=2
      job web       tasks=2 min=1 cpu=2
      cycle         web: 2 bound
      cycle         web: Running
      gone a
      cycle         web: Running, 1 bound
      job more      tasks=1 cpu=2
      cycle         more: 0 bound
      nodes c       cpu=2
      cycle         more: 1 bound
    """)


def test_a_small_job_is_not_held_up_by_a_large_one_that_cannot_run() -> None:
    play("""
      nodes a       cpu=4
      job huge      tasks=10 cpu=2
      job small     tasks=1 cpu=2
      cycle         huge: 0 bound; small: 1 bound
    """)
