// SPDX-License-Identifier: Apache-2.0
//
// The index: rows of WAYS ways in block memory. A way has a valid bit, a tag, the item's size in beats
// and which half of its slot holds the item. A row never holds the same tag twice, so at most one
// item has to be read and compared; a key that meets another key's tag in its row replaces it.
//
// Four steps: a row is read, it goes into registers, its tags are compared, a way is chosen. An operation stays in the first stage for the
// second and the third, as block memory answers late in a cycle. REQUIRES: a row does not change while an operation on it is here
// (ht_lookup's scoreboard), unless it follows a plain set: then it gets that set's way, and the item that will be there.
module ht_index #(
    parameter int ROW_BITS = 11,
    parameter int TAG_BITS = 16,
    parameter int WAYS = 8,        // a power of 2, 2 to 16
    parameter int SIZE_BITS = 8,   // of an item's size in beats
    parameter int ID_BITS = 5,
    parameter int W = 8         // what goes with an operation
) (
    input  logic                clk,
    input  logic                rst,
    output logic                ready,  // the index has been cleared after reset
    input  logic                in_valid,  // REQUIRES: ready, and in_ready without in_valid in the cycle before
    output logic                in_ready,
    input  logic [ROW_BITS-1:0] in_row,
    input  logic [TAG_BITS-1:0] in_tag,
    input  logic                in_keyed,  // else nothing is found
    input  logic                in_blind,  // what is found is not read; others may follow it
    input  logic [ID_BITS-1:0]  in_id,
    input  logic [SIZE_BITS-1:0] in_beats,  // that its item will have
    input  logic                in_follows,
    input  logic [ID_BITS+1:0]  in_from,   // whom: the lower bits are its in_id
    input  logic [W-1:0]        in_data,
    output logic                out_valid,
    input  logic                out_ready,
    output logic [ROW_BITS-1:0] out_row,
    output logic [TAG_BITS-1:0] out_tag,
    output logic                out_found,   // a way has the tag
    output logic                out_reads,   // its item is read
    output logic [$clog2(WAYS)-1:0] out_way,     // it, or the one to replace
    output logic                out_half,    // of the slot that holds the item
    output logic [SIZE_BITS-1:0] out_beats,   // of the item
    output logic [ID_BITS-1:0]  out_id,
    output logic [W-1:0]        out_data,
    // An item to read from memory; in the order of the operations.
    output logic                read_valid,
    input  logic                read_ready,
    output logic [ROW_BITS+$clog2(WAYS):0] read_slot,   // {row, way, half}
    output logic [SIZE_BITS-1:0] read_beats,
    output logic                read_follows,   // it is in memory only when this writer has written it
    output logic [ID_BITS+1:0]  read_from,
    // Changes, from key_check.
    input  logic                update_valid,
    input  logic [ROW_BITS-1:0] update_row,
    input  logic [$clog2(WAYS)-1:0] update_way,
    input  logic                update_live,
    input  logic [TAG_BITS-1:0] update_tag,
    input  logic                update_half,
    input  logic [SIZE_BITS-1:0] update_beats,
    input  logic                touch_valid,  // an access, for the pseudo-LRU
    input  logic [ROW_BITS-1:0] touch_row,
    input  logic [$clog2(WAYS)-1:0] touch_way
);
  if (WAYS < 2 || WAYS > 16 || WAYS != 2 ** $clog2(WAYS)) begin : g_ways_wrong $error("WAYS is 2, 4, 8 or 16"); end
  if (ROW_BITS < 1 || ROW_BITS > 32) begin : g_row_bits_wrong $error("ROW_BITS is 1 to 32, as a hash has 32 bits"); end
  if (TAG_BITS < 1 || TAG_BITS > 32) begin : g_tag_bits_wrong $error("TAG_BITS is 1 to 32, as a hash has 32 bits"); end
  localparam int WAY_BITS = $clog2(WAYS);
  localparam int ENTRY = 1 + TAG_BITS + 1 + SIZE_BITS;

  // --- Clearing after reset.
  logic [ROW_BITS:0] clear_row;
  assign ready = clear_row[ROW_BITS];

  // --- First stage: the row is read.
  logic s1_valid, s1_aged, s1_keyed, s1_blind;  // s1_aged: not its first cycle here
  logic [ROW_BITS-1:0] s1_row;
  logic [TAG_BITS-1:0] s1_tag;
  logic [W-1:0] s1_data;
  logic s1_follows;
  logic [ID_BITS+1:0] s1_from;
  logic [ID_BITS-1:0] s1_id;
  logic [SIZE_BITS-1:0] s1_beats;
  logic [ENTRY-1:0] entries[WAYS];
  for (genvar w = 0; w < WAYS; w++) begin : g_way
    // No row is read in the cycle in which it changes. The register is the memory's own: of an array of
    // them synthesis makes a memory, and of this one distributed memory.
    (* no_rw_check *) logic [ENTRY-1:0] mem[2**ROW_BITS];
    logic [ENTRY-1:0] entry;
    logic write;
    assign write = !ready || (update_valid && update_way == WAY_BITS'(w));
    always_ff @(posedge clk) begin
      if (in_valid) entry <= mem[in_row];
      if (write)
        mem[ready?update_row : clear_row[ROW_BITS-1:0]] <=
            ready ? {update_live, update_tag, update_half, update_beats} : '0;
    end
    assign entries[w] = entry;
  end
  // A bit less than ways, of each row: a tree that points away from the ways used last, its root first, then level by level. A
  // lost update costs only a worse choice.
  (* no_rw_check *) logic [WAYS-2:0] lru[2**ROW_BITS];
  logic [WAYS-2:0] s1_lru, touch_lru, used_lru;
  logic touch_pending, used_pending;
  logic [ROW_BITS-1:0] touch_row_q, used_row;
  logic [WAY_BITS-1:0] touch_way_q;
  always_ff @(posedge clk) begin
    if (in_valid) s1_lru <= lru[in_row];
    if (touch_valid) touch_lru <= lru[touch_row];
    touch_pending <= touch_valid && !rst;
    touch_row_q <= touch_row;
    touch_way_q <= touch_way;
    used_pending <= touch_pending && !rst;
    used_row <= touch_row_q;
    used_lru <= used(touch_lru, touch_way_q);
    if (used_pending || !ready) lru[ready?used_row : clear_row[ROW_BITS-1:0]] <= ready ? used_lru : '0;
  end
  // On a level, the node above a way is that which the way's upper bits number.
  function automatic logic [WAYS-2:0] used(logic [WAYS-2:0] tree, logic [WAY_BITS-1:0] last);
    used = tree;
    for (int level = 0; level < WAY_BITS; level++)
      for (int node = 0; node < 2 ** level; node++)
        if (last >> (WAY_BITS - level) == WAY_BITS'(node)) used[2**level-1+node] = !last[WAY_BITS-1-level];
  endfunction
  function automatic logic [WAY_BITS-1:0] oldest(logic [WAYS-2:0] tree);
    oldest = '0;
    for (int level = 0; level < WAY_BITS; level++)
      for (int node = 0; node < 2 ** level; node++)
        if (oldest >> (WAY_BITS - level) == WAY_BITS'(node)) oldest[WAY_BITS-1-level] = tree[2**level-1+node];
  endfunction

  // --- What memory has answered, in the second cycle here.
  logic [ENTRY-1:0] answers[WAYS];
  for (genvar w = 0; w < WAYS; w++) begin : g_answer
    always_ff @(posedge clk) answers[w] <= entries[w];
  end

  // --- Second stage: which ways have the tag.
  logic s2_valid, s2_ready, s2_blind;
  logic [ROW_BITS-1:0] s2_row;
  logic [TAG_BITS-1:0] s2_tag;
  logic [W-1:0] s2_data;
  logic s2_follows;
  logic [ID_BITS+1:0] s2_from;
  logic [ID_BITS-1:0] s2_id;
  logic [SIZE_BITS-1:0] s2_beats;
  logic [WAYS-2:0] s2_lru;
  logic [WAYS-1:0] has_tag, is_free;
  logic [SIZE_BITS:0] item_of[WAYS];  // half and size
  assign in_ready = !s1_valid || s2_ready;
  always_ff @(posedge clk) begin
    if (s2_ready) begin
      s2_data <= s1_data;
      s2_row <= s1_row;
      s2_tag <= s1_tag;
      s2_blind <= s1_blind;
      s2_lru <= s1_lru;
      s2_follows <= s1_follows;
      s2_from <= s1_from;
      s2_id <= s1_id;
      s2_beats <= s1_beats;
      for (int w = 0; w < WAYS; w++) begin
        has_tag[w] <= s1_keyed && answers[w][ENTRY-1] && answers[w][ENTRY-2-:TAG_BITS] == s1_tag;
        is_free[w] <= !answers[w][ENTRY-1];
        item_of[w] <= answers[w][SIZE_BITS:0];
      end
    end
  end

  // --- Third stage: a way is chosen. Of plain sets it is known here where their items will be.
  logic [WAY_BITS+SIZE_BITS:0] will_be[2**ID_BITS];
  logic [WAY_BITS-1:0] told_way;
  logic told_half;
  logic [SIZE_BITS-1:0] told_beats;
  assign {told_way, told_half, told_beats} = will_be[s2_from[ID_BITS-1:0]];
  always_ff @(posedge clk) if (out_valid && out_ready && s2_blind) will_be[s2_id] <= {out_way, !out_half, s2_beats};
  logic [WAY_BITS-1:0] found_way, free_way;
  always_comb begin
    found_way = '0;
    free_way = '0;
    for (int w = WAYS - 1; w >= 0; w--) begin
      if (has_tag[w]) found_way = WAY_BITS'(w);
      if (is_free[w]) free_way = WAY_BITS'(w);
    end
  end
  logic [WAY_BITS-1:0] way;
  assign way = has_tag != '0 ? found_way : is_free != '0 ? free_way : oldest(s2_lru);
  assign out_reads = out_found && !s2_blind;

  // Whether an item is read is known late: the operation waits for room for that in any case.
  assign s2_ready = !s2_valid || (out_ready && read_ready);
  assign out_valid = s2_valid && read_ready;
  assign read_valid = s2_valid && out_reads && out_ready;
  assign out_row = s2_row;
  assign out_tag = s2_tag;
  assign out_id = s2_id;
  assign out_data = s2_data;
  assign out_found = s2_follows || has_tag != '0;
  assign out_way = s2_follows ? told_way : way;
  assign out_half = s2_follows ? told_half : item_of[way][SIZE_BITS];
  assign out_beats = s2_follows ? told_beats : item_of[way][SIZE_BITS-1:0];
  assign read_slot = {s2_row, out_way, out_half};
  assign read_beats = out_beats;
  assign read_follows = s2_follows;
  assign read_from = s2_from;

  always_ff @(posedge clk) begin
    if (rst) begin
      s1_valid <= 1'b0;
      s1_aged <= 1'b0;
      s2_valid <= 1'b0;
      clear_row <= '0;
    end else begin
      if (!ready) clear_row <= clear_row + 1'b1;
      if (in_valid) s1_valid <= 1'b1;
      else if (s1_aged && s2_ready) s1_valid <= 1'b0;
      s1_aged <= s1_valid && !in_valid && !(s1_aged && s2_ready);
      if (s2_ready) s2_valid <= s1_aged;
    end
  end
  always_ff @(posedge clk) begin
    if (in_valid) begin
      s1_data <= in_data;
      s1_row <= in_row;
      s1_tag <= in_tag;
      s1_keyed <= in_keyed;
      s1_blind <= in_blind;
      s1_id <= in_id;
      s1_beats <= in_beats;
      s1_follows <= in_follows;
      s1_from <= in_from;
    end
  end

`ifdef FORMAL
  `include "ht_index_formal.svh"
`endif
endmodule
