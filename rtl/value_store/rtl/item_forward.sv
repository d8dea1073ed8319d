// SPDX-License-Identifier: Apache-2.0
//
// Keeps the words of the items that have been written last, one for each entry of the scoreboard, and answers reads of
// such an item in memory's stead, as memory may not have it yet. A read that follows a writer is answered when that one
// has ended, between memory's answers.
//
// Writers end in the order of their numbers, the lower bits of which are their entries.
// REQUIRES: who reads an item follows its writer, the newest of its entry when the reader was let through.
module item_forward #(
    parameter int HAZARDS_LOG = 5,
    parameter int WORDS_LOG = 5,   // of an item that can be read here
    parameter int TAG_LOG = 6
) (
    input  logic                   clk,
    input  logic                   rst,
    // What goes to item_writer.
    input  logic                   write_begins,
    input  logic [HAZARDS_LOG-1:0] write_id,
    input  logic                   data_valid,
    input  logic [63:0]            data,
    input  logic                   writer_ends,   // with its last word, or later
    // Bursts to read, in beats of two words.
    input  logic                   ask_valid,
    output logic                   ask_ready,
    input  logic [HAZARDS_LOG+1:0] ask_from,      // the number of the writer
    input  logic [WORDS_LOG-2:0]   ask_beat,      // the first one
    input  logic [2:0]             ask_len,
    input  logic [TAG_LOG-1:0]     ask_tag,
    // Answers of the memory, always taken, and with those from here.
    input  logic                   memory_valid,
    input  logic [TAG_LOG-1:0]     memory_tag,
    input  logic [127:0]           memory_data,
    output logic                   r_valid,
    output logic [TAG_LOG-1:0]     r_tag,
    output logic [127:0]           r_data
);
  // --- The words.
  (* no_rw_check *) logic [63:0] even[2**(HAZARDS_LOG+WORDS_LOG-1)];
  (* no_rw_check *) logic [63:0] odd[2**(HAZARDS_LOG+WORDS_LOG-1)];
  logic [HAZARDS_LOG-1:0] id;
  logic [WORDS_LOG-1:0] word;
  always_ff @(posedge clk) begin
    if (write_begins) begin
      id <= write_id;
      word <= '0;
    end else if (data_valid) begin
      word <= word + 1'b1;
    end
    if (data_valid && !word[0]) even[{id, word[WORDS_LOG-1:1]}] <= data;
    if (data_valid && word[0]) odd[{id, word[WORDS_LOG-1:1]}] <= data;
  end

  // --- Which writers have ended: of any that is followed, the next number is less than half a round away.
  logic [HAZARDS_LOG+1:0] ended, behind;
  always_ff @(posedge clk) begin
    if (rst) ended <= '0;
    else if (writer_ends) ended <= ended + 1'b1;
  end

  // --- Reads.
  logic head_valid, head_ready, fetch, waits, last;
  logic [HAZARDS_LOG+1:0] from;
  logic [WORDS_LOG-2:0] first, at;
  logic [2:0] len, beat;
  logic [TAG_LOG-1:0] head_tag, tag;
  logic [127:0] words;
  fifo #(.W(HAZARDS_LOG + WORDS_LOG + TAG_LOG + 4), .LOG(3), .HEAD(1'b1)) asks (
      .clk, .rst, .in_valid(ask_valid), .in_ready(ask_ready), .in_data({ask_from, ask_beat, ask_len, ask_tag}),
      .out_valid(head_valid), .out_ready(head_ready), .out_data({from, first, len, head_tag})
  );
  assign behind = ended - from;
  assign fetch = head_valid && behind != '0 && !behind[HAZARDS_LOG+1] && !(waits && memory_valid);
  assign at = first + (WORDS_LOG - 1)'(beat);
  assign last = beat + 3'd1 == len;
  assign head_ready = fetch && last;
  always_ff @(posedge clk) begin
    if (fetch) begin
      words <= {odd[{from[HAZARDS_LOG-1:0], at}], even[{from[HAZARDS_LOG-1:0], at}]};
      tag <= head_tag;
    end
    if (rst) begin
      waits <= 1'b0;
      beat <= '0;
    end else begin
      waits <= fetch || (waits && memory_valid);
      if (fetch) beat <= last ? 3'd0 : beat + 3'd1;
    end
  end
  assign r_valid = memory_valid || waits;
  assign r_tag = memory_valid ? memory_tag : tag;
  assign r_data = memory_valid ? memory_data : words;

`ifdef FORMAL
  `include "item_forward_formal.svh"
`endif
endmodule
