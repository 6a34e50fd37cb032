/* Done before the rounds: find nodes that the rounds cannot distinguish yet, and shared work.
 *
 * The largest message does not depend on how often it is sent. So two nodes have equal embeddings
 * after t rounds if t rounds of colour refinement give them the same colour. At first, all nodes
 * have one colour. A node's next colour is made of its present one and of the set of (relation,
 * place, colours of all arguments) of its atoms. Colours are hashes of 64 bits.
 *
 * Nodes of one colour are merged, and so are atoms that become equal by this. The smaller graph
 * replaces the whole one in the rounds up to t. A stage is a run of rounds on one graph. Its nodes
 * are numbered from node_begin on, in the order of the first node of each colour. So a node's
 * number never falls from one stage to the next.
 */

typedef struct {
    int64_t size;              /* D */
    int64_t relations;         /* R */
    const int64_t *arity;      /* [R] */
    const REAL *weights;       /* all parameters, see `layout` in parameters.py */
    const int64_t *message_at; /* [R] where each relation's MLP begins in `weights` */
    int64_t update_at;         /* where the update MLP begins */
    int64_t norm_at;           /* where the layer norm's scale, then shift, begin */
} Network;

/* One shard of the batch, or the smaller graph of a stage. */
typedef struct {
    int64_t nodes;             /* N of the whole batch */
    int64_t arguments;         /* M of the whole batch */
    const int64_t *args;       /* [M] nodes, relation after relation */
    const int64_t *args_at;    /* [R] where each relation's arguments begin */
    const int64_t *atom_begin; /* [R] */
    const int64_t *atom_end;   /* [R] */
    int64_t node_begin, node_end;
} Graph;

#define MOST_STAGES 16
#define GRAPHS 4 /* memory for all stages, in graphs as large as the whole one */

typedef struct {
    Graph graph;             /* its atoms begin at 0, and `atom_begin` is 0 */
    int64_t until;           /* its graph is used in the rounds before this one */
    const int64_t *class_of; /* [nodes of the whole graph] their nodes here */
    const int64_t *before;   /* [nodes of this graph] their nodes in the stage before */
    const int64_t *row_at;   /* [R] where the rows of each relation's arguments begin in [M] */
    /* If many atoms of a relation have the same node in one place, that node's part of the MLP's
     * first layer is computed once. */
    int64_t *shared;         /* [sum of arities] how many nodes each place has; 0: not shared */
    int32_t *slot;           /* number of each argument's node among those of its place */
    int64_t *node_of;        /* the nodes by this number; those of a place begin at
                              * args_at[r] + place * atom_end[r] */
} Stage;

/* The stages of a call. What they point to lies behind them in the same memory. */
typedef struct {
    int64_t count;
    int64_t *free, *end;
    Stage stage[MOST_STAGES];
} Stages;

static uint64_t mix(uint64_t x) {
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93u;
    return x ^ x >> 32;
}

typedef struct {
    uint64_t *keys;
    uint64_t mask;
} Set;

static int64_t set_room(int64_t items) {
    int64_t room = 16;
    while (room < 2 * items) room *= 2;
    return room;
}

static void clear_set(Set *set, int64_t items) {
    set->mask = set_room(items) - 1;
    memset(set->keys, 0, (set->mask + 1) * sizeof(uint64_t));
}

/* Return the place where a key is or belongs; 0 is not a key. */
static uint64_t place_of(const Set *set, uint64_t key) {
    uint64_t at = key & set->mask;
    while (set->keys[at] && set->keys[at] != key) at = (at + 1) & set->mask;
    return at;
}

static uint64_t key_of(uint64_t hash) { return hash + !hash; }

/* Add a hash to the set; returns whether it was new. */
static int add_to(Set *set, uint64_t hash) {
    uint64_t at = place_of(set, key_of(hash));
    if (set->keys[at]) return 0;
    set->keys[at] = key_of(hash);
    return 1;
}

static int64_t count_colours(const Graph *g, const uint64_t *colour, Set *set) {
    int64_t count = 0;
    clear_set(set, g->node_end - g->node_begin);
    for (int64_t v = g->node_begin; v < g->node_end; v++) count += add_to(set, colour[v]);
    return count;
}

static uint64_t atom_colour(int64_t r, int64_t K, const int64_t *args, const uint64_t *colour) {
    uint64_t h = mix(r + 1);
    for (int64_t i = 0; i < K; i++) h = mix(h * 31 + colour[args[i]]);
    return h;
}

/* Do one round of refinement: each node's next colour comes from its colour and from the set of
 * coloured places that it is in. */
static void refine(const Network *net, const Graph *g, const uint64_t *colour, uint64_t *next,
                   Set *set, int64_t arguments) {
    for (int64_t v = g->node_begin; v < g->node_end; v++) next[v] = 0;
    clear_set(set, arguments);
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t K = net->arity[r];
        for (int64_t a = g->atom_begin[r]; a < g->atom_end[r]; a++) {
            const int64_t *args = g->args + g->args_at[r] + a * K;
            uint64_t h = atom_colour(r, K, args, colour);
            for (int64_t i = 0; i < K; i++) {
                uint64_t place = mix(h + i);
                if (add_to(set, mix(place ^ (uint64_t)args[i] * 0x9e3779b97f4a7c15u)))
                    next[args[i]] += place;
            }
        }
    }
    for (int64_t v = g->node_begin; v < g->node_end; v++) next[v] = mix(colour[v] * 31 + next[v]);
}

/* Number the colours, and set each node's class to the number of its colour. Returns the number
 * after the last one. */
static int64_t number_classes(const Graph *g, const uint64_t *colour, Set *set, int64_t *number,
                              int64_t *class_of) {
    int64_t end = g->node_begin;
    clear_set(set, g->node_end - g->node_begin);
    for (int64_t v = g->node_begin; v < g->node_end; v++) {
        if (add_to(set, colour[v])) number[place_of(set, key_of(colour[v]))] = end++;
        class_of[v - g->node_begin] = number[place_of(set, key_of(colour[v]))];
    }
    return end;
}

/* Write every atom between classes once, in the order of the atoms. Returns how many arguments. */
static int64_t merge_atoms(const Network *net, const Graph *whole, const int64_t *class_of,
                           Set *set, int64_t arguments, int64_t *args, int64_t *args_at,
                           int64_t *atom_end) {
    int64_t used = 0;
    clear_set(set, arguments);
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t K = net->arity[r], end = 0;
        const int64_t *from = whole->args + whole->args_at[r] + whole->atom_begin[r] * K;
        for (int64_t a = whole->atom_begin[r]; a < whole->atom_end[r]; a++, from += K) {
            int64_t *to = args + used + end * K;
            uint64_t h = mix(r + 1);
            for (int64_t i = 0; i < K; i++) {
                to[i] = class_of[from[i] - whole->node_begin];
                h = mix(h * 31 + (uint64_t)to[i]);
            }
            end += add_to(set, h);
        }
        args_at[r] = used, atom_end[r] = end;
        used += end * K;
    }
    return used;
}

/* Find the places of each relation that have few nodes for its atoms, and number these nodes.
 * `number` [node_end] is memory to work in, all 0 before and after. */
static void find_shared(const Network *net, Stage *stage, int32_t *number) {
    const Graph *g = &stage->graph;
    int64_t *shared = stage->shared;
    for (int64_t r = 0; r < net->relations; r++) {
        int64_t K = net->arity[r], atoms = g->atom_end[r], first = g->args_at[r];
        for (int64_t i = 0; i < K; i++, shared++) {
            int64_t found = 0, *nodes = stage->node_of + first + i * atoms;
            for (int64_t a = first + i; a < first + atoms * K; a += K) {
                int64_t v = g->args[a];
                if (!number[v]) {
                    nodes[found++] = v;
                    number[v] = (int32_t)found;
                }
                stage->slot[a] = number[v] - 1;
            }
            for (int64_t n = 0; n < found; n++) number[nodes[n]] = 0;
            *shared = K > 1 && 4 * found <= 3 * atoms ? found : 0;
        }
    }
}

/* Count the places of the relations before this one. */
static int64_t places_before(const Network *net, int64_t relation) {
    int64_t places = 0;
    for (int64_t r = 0; r < relation; r++) places += net->arity[r];
    return places;
}

static int64_t count_arguments(const Network *net, const Graph *g) {
    int64_t count = 0;
    for (int64_t r = 0; r < net->relations; r++)
        count += (g->atom_end[r] - g->atom_begin[r]) * net->arity[r];
    return count;
}

/* Return how many numbers of eight bytes a stage needs at most. */
static int64_t stage_room(const Network *net, const Graph *whole, int64_t arguments) {
    return 2 * (whole->node_end - whole->node_begin) + 3 * arguments + 3 * net->relations +
           places_before(net, net->relations);
}

static int64_t *reserve(Stages *stages, int64_t count) {
    int64_t *found = stages->free;
    stages->free += count;
    return found;
}

typedef struct {
    uint64_t *colour, *next;
    int64_t *number;   /* by place in the set */
    int32_t *slots;
    Set set;
    int64_t arguments; /* of the whole graph */
} Work;

/* Add the stage of these colours, for the rounds up to `until` that have no stage yet. */
static void add_stage(const Network *net, const Graph *whole, const uint64_t *colour, Work *work,
                      int64_t until, Stages *stages) {
    int64_t nodes = whole->node_end - whole->node_begin, R = net->relations;
    Stage *stage = stages->stage + stages->count;
    Graph *g = &stage->graph;
    int64_t *class_of = reserve(stages, nodes);
    *g = *whole;
    g->node_end = number_classes(whole, colour, &work->set, work->number, class_of);
    int64_t *before = reserve(stages, g->node_end - g->node_begin);
    for (int64_t v = 0; stages->count && v < nodes; v++)
        before[class_of[v] - g->node_begin] = stage[-1].class_of[v];
    int64_t *row_at = reserve(stages, R), *args_at = reserve(stages, R);
    int64_t *atom_end = reserve(stages, R);
    for (int64_t r = 0; r < R; r++)
        row_at[r] = whole->args_at[r] + whole->atom_begin[r] * net->arity[r];
    stage->shared = reserve(stages, places_before(net, R));
    int64_t used = merge_atoms(net, whole, class_of, &work->set, work->arguments, stages->free,
                               args_at, atom_end);
    g->args = reserve(stages, used), g->args_at = args_at;
    g->atom_begin = 0, g->atom_end = atom_end;
    stage->slot = (int32_t *)reserve(stages, (used + 1) / 2);
    stage->node_of = reserve(stages, used);
    stage->until = until, stage->class_of = class_of;
    stage->before = before, stage->row_at = row_at;
    find_shared(net, stage, work->slots);
    stages->count++;
}

/* Tell whether there is memory for one more stage and for the last one. */
static int room_for_two(const Network *net, const Graph *whole, const Work *work,
                        const Stages *stages) {
    int64_t room = stages->end - stages->free;
    return stages->count + 2 <= MOST_STAGES && room >= 2 * stage_room(net, whole, work->arguments);
}

/* Refine while colours are few. End a stage before a round with many more colours if running the
 * stage's rounds on the larger graph would take longer than building another graph. */
static void add_stages(const Network *net, const Graph *g, int64_t layers, Work *work,
                       Stages *stages) {
    int64_t nodes = g->node_end - g->node_begin, classes = 1, more, from = 0, t = 0;
    for (int64_t v = g->node_begin; v < g->node_end; v++) work->colour[v] = 1;
    while (t < layers) {
        int few = 16 * classes <= 15 * nodes;
        if (few) {
            refine(net, g, work->colour, work->next, &work->set, work->arguments);
            more = count_colours(g, work->next, &work->set);
        } else {
            for (int64_t v = g->node_begin; v < g->node_end; v++) work->next[v] = v + 1;
            more = nodes;
        }
        if (4 * (t - from) * (more - classes) > classes && room_for_two(net, g, work, stages)) {
            add_stage(net, g, work->colour, work, t, stages);
            from = t;
        }
        int last = !few || more == classes;
        uint64_t *swap = work->colour;
        work->colour = work->next, work->next = swap;
        classes = more, t++;
        if (last) break;
    }
    add_stage(net, g, work->colour, work, layers, stages);
}

/* Return how many numbers of eight bytes the memory for a graph's stages must have. */
int64_t regoal_room(const Network *net, const Graph *g) {
    return (int64_t)(sizeof(Stages) / sizeof(int64_t)) +
           GRAPHS * stage_room(net, g, count_arguments(net, g));
}

/* Find the stages of this many rounds. Returns 1 if there is no memory, else 0. */
static int64_t find_stages(const Network *net, const Graph *g, int64_t layers, Stages *stages) {
    int64_t nodes = g->node_end - g->node_begin;
    Work work = {.arguments = count_arguments(net, g)};
    int64_t room = set_room(nodes > work.arguments ? nodes : work.arguments);
    uint64_t *memory = malloc((2 * room + 3 * g->node_end) * sizeof(uint64_t) + 1);
    if (!memory) return 1;
    work.set.keys = memory, work.number = (int64_t *)(memory + room);
    work.colour = memory + 2 * room, work.next = work.colour + g->node_end;
    work.slots = (int32_t *)(work.next + g->node_end);
    memset(work.slots, 0, g->node_end * sizeof(int32_t));
    stages->count = 0, stages->free = (int64_t *)(stages + 1);
    stages->end = stages->free + GRAPHS * stage_room(net, g, work.arguments);
    add_stages(net, g, layers, &work, stages);
    free(memory);
    return 0;
}
