/* The applicable actions that begin a relaxed plan, as plan_tables.py has them in numpy.
 *
 * Facts are numbered; F is one that always holds, and fills up rows. A fact's round is the layer of
 * the relaxed planning graph in which it is true first, an action's the layer in which it can be
 * applied first; -1 if there is none, or if it is later than is of interest.
 */
#include <limits.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    int64_t facts, actions, names;              /* F, A, and how many names actions have */
    int64_t most_needs, most_makes;             /* the longest row of each */
    const int32_t *needs, *makes;               /* [A, K] facts */
    const int32_t *needers, *needers_begin;     /* the actions that need each fact: [..], [F + 1] */
    const int32_t *makers, *makers_begin;       /* the actions that make each fact */
    const int32_t *sizes, *name_of;             /* [A] facts that it needs, and its name */
    const int32_t *free;                        /* the actions that need nothing */
    int64_t free_count;
    int32_t *fact_round, *queue;                /* [F + 1] */
    int32_t *action_round, *lacking, *chosen;   /* [A] */
    int64_t *fact_leads, *action_leads;         /* [F + 1], [A] bits: 0 if chosen, 1 + a name */
    uint8_t *wanted, *taken;                    /* [F + 1], [A] */
} Plans;

/* Let an action be applied: queue the facts that it makes for the first time. `left` counts the
 * wanted facts that are not reached yet, and `last` is the round of the last of them. */
static int64_t plan_apply(const Plans *p, int32_t action, int32_t round, int64_t end, int64_t *left,
                     int32_t *last) {
    p->action_round[action] = round;
    const int32_t *made = p->makes + action * p->most_makes;
    for (int64_t i = 0; i < p->most_makes; i++) {
        if (p->fact_round[made[i]] >= 0) continue;
        p->fact_round[made[i]] = round + 1;
        p->queue[end++] = made[i];
        if (p->wanted[made[i]] && --*left == 0) *last = round + 1;
    }
    return end;
}

/* Find the rounds of all facts and actions up to that of the last wanted fact. Returns how many
 * facts there are; the queue has them in the order of their rounds. */
static int64_t plan_explore(const Plans *p, const int32_t *holding, int64_t count, int64_t left) {
    int64_t end = 0;
    int32_t last = INT_MAX;
    for (int64_t i = 0; i < count; i++) {
        if (p->fact_round[holding[i]] == 0) continue;
        p->fact_round[holding[i]] = 0;
        p->queue[end++] = holding[i];
    }
    for (int64_t i = 0; i < p->free_count; i++) end = plan_apply(p, p->free[i], 0, end, &left, &last);
    for (int64_t at = 0; at < end; at++) {
        int32_t fact = p->queue[at], round = p->fact_round[fact];
        if (round >= last) break;
        for (int32_t i = p->needers_begin[fact]; i < p->needers_begin[fact + 1]; i++)
            if (--p->lacking[p->needers[i]] == 0)
                end = plan_apply(p, p->needers[i], round, end, &left, &last);
    }
    return end;
}

/* Choose the actions that make what is wanted in time, and what these need. Returns how many. */
static int64_t plan_choose(const Plans *p, int64_t end) {
    int64_t count = 0;
    for (int64_t at = end - 1; at >= 0; at--) {
        int32_t fact = p->queue[at], round = p->fact_round[fact];
        if (!p->wanted[fact] || round <= 0) continue;
        for (int32_t i = p->makers_begin[fact]; i < p->makers_begin[fact + 1]; i++) {
            int32_t action = p->makers[i];
            if (p->action_round[action] != round - 1 || p->taken[action]) continue;
            p->taken[action] = 1;
            p->chosen[count++] = action;
            const int32_t *needs = p->needs + action * p->most_needs;
            for (int64_t k = 0; k < p->most_needs; k++)
                if (p->fact_round[needs[k]] > 0) p->wanted[needs[k]] = 1;
        }
    }
    return count;
}

/* Return the only fact that an action lacks; -1 if there are several or none. */
static int32_t plan_single(const Plans *p, int32_t action) {
    int32_t found = -1;
    const int32_t *needs = p->needs + action * p->most_needs;
    for (int64_t k = 0; k < p->most_needs; k++) {
        if (p->fact_round[needs[k]] <= 0) continue;
        if (found >= 0) return -1;
        found = needs[k];
    }
    return found;
}

/* Set the bits of the facts that the nearest chosen actions of each name lack. */
static void plan_aim(const Plans *p, int64_t count) {
    int32_t nearest[64];
    for (int64_t n = 0; n < p->names; n++) nearest[n] = INT_MAX;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < count; i++) {
            int32_t fact = plan_single(p, p->chosen[i]), name = p->name_of[p->chosen[i]];
            if (fact < 0) continue;
            if (pass == 0 && p->fact_round[fact] < nearest[name]) nearest[name] = p->fact_round[fact];
            if (pass == 1 && p->fact_round[fact] == nearest[name])
                p->fact_leads[fact] |= (int64_t)2 << name;
        }
}

/* Pass the bits of facts on to the actions that make them in time, and to what these need last, and
 * so on; list the applicable actions with some bit. */
static int64_t plan_list(const Plans *p, int64_t end, int64_t chosen, int32_t *actions) {
    int64_t count = 0;
    for (int64_t i = 0; i < chosen; i++)
        if (p->action_round[p->chosen[i]] == 0) {
            p->action_leads[p->chosen[i]] = 1;
            actions[count++] = p->chosen[i];
        }
    for (int64_t at = end - 1; at >= 0; at--) {
        int32_t fact = p->queue[at], round = p->fact_round[fact];
        int64_t bits = p->fact_leads[fact];
        if (!bits) continue;
        for (int32_t i = p->makers_begin[fact]; i < p->makers_begin[fact + 1]; i++) {
            int32_t action = p->makers[i];
            if (p->action_round[action] != round - 1) continue;
            if (round == 1 && !p->action_leads[action]) actions[count++] = action;
            p->action_leads[action] |= bits;
            const int32_t *needs = p->needs + action * p->most_needs;
            for (int64_t k = 0; round > 1 && k < p->most_needs; k++)
                if (p->fact_round[needs[k]] == round - 1) p->fact_leads[needs[k]] |= bits;
        }
    }
    return count;
}

/* Write the actions [A] that begin a relaxed plan for the wanted facts, and the bits [A] of each:
 * 1 if it is part of the plan, 2 << n if it leads towards an action with name n. Returns how many. */
int64_t regoal_relaxed_plan(const Plans *p, const int32_t *holding, int64_t held, const int32_t *wanted,
                     int64_t wanting, int32_t *actions, int64_t *bits) {
    memset(p->fact_round, -1, (p->facts + 1) * sizeof(int32_t));
    memset(p->action_round, -1, p->actions * sizeof(int32_t));
    memcpy(p->lacking, p->sizes, p->actions * sizeof(int32_t));
    memset(p->fact_leads, 0, (p->facts + 1) * sizeof(int64_t));
    memset(p->action_leads, 0, p->actions * sizeof(int64_t));
    memset(p->wanted, 0, p->facts + 1);
    memset(p->taken, 0, p->actions);
    p->fact_round[p->facts] = 0;
    for (int64_t i = 0; i < wanting; i++) p->wanted[wanted[i]] = 1;
    int64_t end = plan_explore(p, holding, held, wanting);
    int64_t chosen = plan_choose(p, end);
    plan_aim(p, chosen);
    int64_t count = plan_list(p, end, chosen, actions);
    for (int64_t i = 0; i < count; i++) bits[i] = p->action_leads[actions[i]];
    return count;
}
