// SPDX-License-Identifier: Apache-2.0
//
// The index: rows of 8 ways in block memory. A way has a valid bit, a tag, the item's size in beats
// and which half of its slot holds the item. A row never holds the same tag twice, so at most one
// item has to be read and compared; a key that meets another key's tag in its row replaces it.
//
// Hazards: an operation waits while an operation before it that may write to its row has not
// finished (`free_a`, `free_b`). Readers of a row need not finish before a writer starts, since
// operations take effect in order (key_check).
//
// Operations without a key pass through in order.
module ht_lookup
  import wc_pkg::*;
#(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int HAZARDS_LOG = 5
) (
    input  logic                clk,
    input  logic                rst,
    output logic                ready,  // the index has been cleared after reset
    input  logic                op_valid,
    output logic                op_ready,
    input  meta_t               op,
    input  logic [31:0]         row_hash,
    input  logic [31:0]         tag_hash,
    // Operations with what has been found.
    output logic                out_valid,
    input  logic                out_ready,
    output meta_t               out_op,
    output logic [ROW_BITS-1:0] out_row,
    output logic [TAG_BITS-1:0] out_tag,
    output logic                out_found,   // a way has the tag
    output logic [2:0]          out_way,     // it, or the one to replace
    output logic                out_half,    // of the slot that holds the item
    output logic [7:0]          out_beats,   // of the item
    output logic [HAZARDS_LOG-1:0] out_hazard,  // of a writer
    // An item to read from memory; in the order of the operations.
    output logic                read_valid,
    input  logic                read_ready,
    output logic [ROW_BITS+3:0] read_slot,   // {row, way, half}
    output logic [7:0]          read_beats,
    // Changes, from key_check.
    input  logic                update_valid,
    input  logic [ROW_BITS-1:0] update_row,
    input  logic [2:0]          update_way,
    input  logic                update_live,
    input  logic [TAG_BITS-1:0] update_tag,
    input  logic                update_half,
    input  logic [7:0]          update_beats,
    input  logic                touch_valid,  // an access, for the pseudo-LRU
    input  logic [ROW_BITS-1:0] touch_row,
    input  logic [2:0]          touch_way,
    input  logic                free_a_valid,  // a writer has finished
    input  logic [HAZARDS_LOG-1:0] free_a_id,
    input  logic                free_b_valid,
    input  logic [HAZARDS_LOG-1:0] free_b_id,
    output logic                stalled       // by a hazard, for the counters
);
  localparam int WAYS = 8;
  localparam int ENTRY = 1 + TAG_BITS + 1 + 8;

  logic [ROW_BITS-1:0] row;
  assign row = row_hash[ROW_BITS-1:0];
  logic keyed, writer, hazard;
  assign keyed = has_key(op.op);
  assign writer = is_write(op.op, op.touch);
  logic take;
  logic [HAZARDS_LOG-1:0] next_id;
  scoreboard #(.ROW_BITS(ROW_BITS), .LOG(HAZARDS_LOG)) hazards (
      .clk, .rst, .row, .keyed, .writer, .hazard, .take, .id(next_id), .free_a_valid, .free_a_id,
      .free_b_valid, .free_b_id
  );

  // --- Clearing after reset.
  logic [ROW_BITS:0] clear_row;
  assign ready = clear_row[ROW_BITS];

  // --- First stage: the row is read.
  logic s1_valid, s1_ready;
  meta_t s1_op;
  logic [ROW_BITS-1:0] s1_row;
  logic [TAG_BITS-1:0] s1_tag;
  logic [HAZARDS_LOG-1:0] s1_hazard;
  logic s1_keyed;
  assign take = op_valid && ready && !hazard && s1_ready;
  assign op_ready = ready && !hazard && s1_ready;
  assign stalled = op_valid && ready && hazard;

  logic [ENTRY-1:0] entries[WAYS];
  for (genvar w = 0; w < WAYS; w++) begin : g_way
    logic [ENTRY-1:0] mem[2**ROW_BITS];
    logic write;
    assign write = !ready || (update_valid && update_way == 3'(w));
    always_ff @(posedge clk) begin
      if (take) entries[w] <= mem[row];
      if (write)
        mem[ready?update_row : clear_row[ROW_BITS-1:0]] <=
            ready ? {update_live, update_tag, update_half, update_beats} : '0;
    end
  end
  // Seven bits a row: a tree that points away from the ways used last. A lost update costs only a
  // worse choice.
  logic [6:0] lru[2**ROW_BITS];
  logic [6:0] s1_lru, touch_lru;
  logic touch_pending;
  logic [ROW_BITS-1:0] touch_row_q;
  logic [2:0] touch_way_q;
  always_ff @(posedge clk) begin
    if (take) s1_lru <= lru[row];
    if (touch_valid) touch_lru <= lru[touch_row];
    touch_pending <= touch_valid && !rst;
    touch_row_q <= touch_row;
    touch_way_q <= touch_way;
    if (touch_pending || !ready)
      lru[ready?touch_row_q : clear_row[ROW_BITS-1:0]] <= ready ? used(touch_lru, touch_way_q) : '0;
  end
  function automatic logic [6:0] used(logic [6:0] tree, logic [2:0] way);
    used = tree;
    used[0] = !way[2];
    used[1+way[2]] = !way[1];
    used[3+way[2:1]] = !way[0];
  endfunction
  function automatic logic [2:0] oldest(logic [6:0] tree);
    logic [2:0] way;
    way[2] = tree[0];
    way[1] = tree[1+way[2]];
    way[0] = tree[3+way[2:1]];
    oldest = way;
  endfunction

  // --- Second stage: tags are compared.
  logic found, any_free;
  logic [2:0] found_way, free_way;
  always_comb begin
    found = 1'b0;
    found_way = 3'd0;
    any_free = 1'b0;
    free_way = 3'd0;
    for (int w = WAYS - 1; w >= 0; w--) begin
      if (entries[w][ENTRY-1] && entries[w][ENTRY-2-:TAG_BITS] == s1_tag) begin
        found = 1'b1;
        found_way = 3'(w);
      end
      if (!entries[w][ENTRY-1]) begin
        any_free = 1'b1;
        free_way = 3'(w);
      end
    end
    found = found && s1_keyed;
  end
  logic [2:0] way;
  assign way = found ? found_way : any_free ? free_way : oldest(s1_lru);
  // A plain set does not read what it replaces.
  logic reads;
  assign reads = found && !(s1_op.op == OP_SET && !s1_op.cas_cmp);

  assign s1_ready = !s1_valid || (out_ready && (!reads || read_ready));
  assign out_valid = s1_valid && (!reads || read_ready);
  assign read_valid = s1_valid && reads && out_ready;
  assign out_op = s1_op;
  assign out_row = s1_row;
  assign out_tag = s1_tag;
  assign out_found = found;
  assign out_way = way;
  assign out_half = entries[way][8];
  assign out_beats = entries[way][7:0];
  assign out_hazard = s1_hazard;
  assign read_slot = {s1_row, way, out_half};
  assign read_beats = out_beats;

  always_ff @(posedge clk) begin
    if (rst) begin
      s1_valid <= 1'b0;
      clear_row <= '0;
    end else begin
      if (!ready) clear_row <= clear_row + 1'b1;
      if (s1_ready) s1_valid <= take;
    end
  end
  always_ff @(posedge clk) begin
    if (take) begin
      s1_op <= op;
      s1_row <= row;
      s1_tag <= tag_hash[TAG_BITS-1:0];
      s1_hazard <= next_id;
      s1_keyed <= keyed;
    end
  end
endmodule
